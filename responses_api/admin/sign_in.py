"""Signing in to the admin: few guesses for a name, and few passwords that are hashed at once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

HASHED_AT_ONCE = 2
WAITING = 8
WAIT_SECONDS = 5.0
"""A hash takes half a second of a core: more at once would take them from those who generate."""

_places = threading.BoundedSemaphore(HASHED_AT_ONCE)
_queue = threading.BoundedSemaphore(HASHED_AT_ONCE + WAITING)


class Busy(Exception):
    """As many passwords are being hashed as may be."""


@contextmanager
def place_to_hash() -> Iterator[None]:
    """Wait a moment for one of the few places. Raises :class:`Busy` when there is none."""
    if not _queue.acquire(blocking=False):
        raise Busy
    try:
        if not _places.acquire(timeout=WAIT_SECONDS):
            raise Busy
        try:
            yield
        finally:
            _places.release()
    finally:
        _queue.release()


class BoundedBackend(ModelBackend):
    """Django's own, for few at once. Names that are locked out don't come here: the backend before it refuses them."""

    def authenticate(self, request: Any, username: Any = None, password: Any = None, **kwargs: Any) -> Any:
        with place_to_hash():
            return super().authenticate(request, username=username, password=password, **kwargs)


def client_address(request: HttpRequest) -> str | None:
    """Where a sign-in comes from. Behind a proxy it is what the proxy saw: the last address, for others are hearsay."""
    if settings.RESPONSES_BEHIND_TLS:
        forwarded = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
        if forwarded:
            return forwarded
    address: str | None = request.META.get("REMOTE_ADDR") or None
    return address


def locked_out(request: HttpRequest, *details: Any) -> HttpResponse:
    """The page after too many wrong passwords."""
    minutes = int(settings.AXES_COOLOFF_TIME.total_seconds() // 60)
    return notice(
        request,
        "Sign-in is locked",
        f"There were {settings.AXES_FAILURE_LIMIT} wrong passwords for this name. It can sign in again {minutes} "
        "minutes after the last of them. An administrator who is signed in can end this at once, under “Access "
        "attempts”; so can, on the server, the command “manage.py axes_reset”.",
        status=429,
        retry_after=minutes * 60,
    )


def too_busy(request: HttpRequest) -> HttpResponse:
    """The page when too many sign in at once."""
    sentence = "Too many people are signing in at this moment. Wait a few seconds, then try again."
    return notice(request, "Try again in a moment", sentence, status=503, retry_after=5)


def notice(request: HttpRequest, title: str, sentence: str, *, status: int, retry_after: int) -> HttpResponse:
    """A page that says one thing."""
    from .site import site

    context = {**site.each_context(request), "title": title, "sentence": sentence, "has_permission": False}
    response = TemplateResponse(request, "admin/sign_in_notice.html", context, status=status)
    response.headers["Retry-After"] = str(retry_after)
    return response.render()
