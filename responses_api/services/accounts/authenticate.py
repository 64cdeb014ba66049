"""Authenticates requests. DRF views, the SSE consumer and the router all use this check."""

import hashlib
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from responses_api.caller import Caller
from responses_api.errors import AuthenticationFailed, PermissionDenied
from responses_api.models import ApiKey, FirstKey, Project

DEFAULT_PROJECT = "default"
LAST_USED_STEP = timedelta(minutes=1)


def key_digest(secret: str) -> str:
    """SHA-256 of a key's secret, as stored."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def is_open() -> bool:
    """Whether requests need no key: the settings keep the server to this machine, and nobody has ever made a key."""
    return bool(settings.RESPONSES_OPEN_ACCESS) and not (FirstKey.objects.exists() or ApiKey.objects.exists())


def secret_from_headers(*, authorization: str, x_api_key: str) -> str:
    """The key in a request's ``Authorization: Bearer`` or ``x-api-key`` header; empty when there is none."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer" and value.strip():
        return value.strip()
    return x_api_key.strip()


def authenticate(
    *, authorization: str = "", x_api_key: str = "", is_forwarded: bool = False, is_foreign_page: bool = False
) -> Caller:
    """The caller behind a request's headers.

    Open access is limited to this machine: a request that a proxy forwarded needs a key, and one that a browser sends
    for a page of another site is refused.

    Raises :class:`AuthenticationFailed`, with the same message for a missing, unknown, revoked or expired key, and
    :class:`PermissionDenied` for a page of another site.
    """
    secret = secret_from_headers(authorization=authorization, x_api_key=x_api_key)
    if secret:
        key = find_key(secret)
        now = timezone.now()
        if key is not None and key.is_usable(now):
            if key.last_used_at is None or now - key.last_used_at > LAST_USED_STEP:
                ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)
            return Caller(project=key.project, key=key)
    project = None if is_forwarded else open_project()
    if project is not None:
        if is_foreign_page:
            raise PermissionDenied(
                "A browser sent this request for a page of another site, and this server answers such pages only when "
                "RESPONSES_CORS_ORIGINS names their origin, or with an API key once one was made."
            )
        return Caller(project=project)
    raise AuthenticationFailed(
        "The API key is missing or not valid. Send a key of this server as 'Authorization: Bearer KEY' or as "
        "'x-api-key: KEY'."
    )


# Raw SQL, since every request makes these queries: the ORM takes longer to build them than the database to run them.
KEY_WITH_PROJECT = """
    SELECT api_key.*, project.public_id AS project_public_id, project.name AS project_name,
        project.store_default AS project_store_default
    FROM responses_api_apikey api_key JOIN responses_api_project project ON project.id = api_key.project_id
    WHERE api_key.digest = %s
"""
OPEN_PROJECT = """
    SELECT project.*,
        EXISTS (SELECT 1 FROM responses_api_firstkey) OR EXISTS (SELECT 1 FROM responses_api_apikey) AS is_closed
    FROM responses_api_project project WHERE name = %s
"""


def find_key(secret: str) -> ApiKey | None:
    """The key with this secret and its project, usable or not."""
    for key in ApiKey.objects.raw(KEY_WITH_PROJECT, [key_digest(secret)]):
        row: Any = key  # with the query's additional columns
        store_default = None if row.project_store_default is None else bool(row.project_store_default)
        values = (key.project_id, row.project_public_id, row.project_name, store_default)
        key.project = Project.from_db(key._state.db, ("id", "public_id", "name", "store_default"), values)
        return key
    return None


def open_project() -> Project | None:
    """The project of requests without a key, if access is open."""
    if not settings.RESPONSES_OPEN_ACCESS:
        return None
    for project in Project.objects.raw(OPEN_PROJECT, [DEFAULT_PROJECT]):
        is_closed: bool = project.is_closed  # type: ignore[attr-defined]  # the query's additional column
        return None if is_closed else project
    return default_project() if is_open() else None


def default_project() -> Project:
    """The project of requests without a key."""
    project, _ = Project.objects.get_or_create(name=DEFAULT_PROJECT)
    return project
