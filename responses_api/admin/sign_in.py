"""Signing in to the admin: limits the guesses per name, and the passwords that are hashed at once."""

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
"""A hash takes half a second of a core: more at once would slow down generation."""

_places = threading.BoundedSemaphore(HASHED_AT_ONCE)
_queue = threading.BoundedSemaphore(HASHED_AT_ONCE + WAITING)


class Busy(Exception):
    """Too many passwords are being hashed."""


@contextmanager
def place_to_hash() -> Iterator[None]:
    """Take one of the places for hashing, after a wait of a few seconds. Raises :class:`Busy` when none is free."""
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
    """Django's backend with a limit on concurrent hashes. Locked-out names are refused by the backend before it."""

    def authenticate(self, request: Any, username: Any = None, password: Any = None, **kwargs: Any) -> Any:
        with place_to_hash():
            return super().authenticate(request, username=username, password=password, **kwargs)


def client_address(request: HttpRequest) -> str | None:
    """The address of a sign-in: behind a proxy the last one in the header, since the client can set the others."""
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
    """The page when too many passwords are being hashed."""
    sentence = "Too many people are signing in at this moment. Wait a few seconds, then try again."
    return notice(request, "Try again in a moment", sentence, status=503, retry_after=5)


def notice(request: HttpRequest, title: str, sentence: str, *, status: int, retry_after: int) -> HttpResponse:
    """A page with a title and one sentence."""
    from .site import site

    context = {**site.each_context(request), "title": title, "sentence": sentence, "has_permission": False}
    response = TemplateResponse(request, "admin/sign_in_notice.html", context, status=status)
    response.headers["Retry-After"] = str(retry_after)
    return response.render()
