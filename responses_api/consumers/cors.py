"""Cross-origin requests from browsers: refused unless `RESPONSES_CORS_ORIGINS` names the page's origin.

One implementation for all responses, around the router's ``send``. Only the API is opened, never the pages, and only to
requests with a key: credentials are not allowed, so that a browser sends no cookies.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any

from django.conf import settings

from responses_api.api.origin import allowed_origin
from responses_api.api.request_scope import Scope, header
from responses_api.api.urls import endpoints

Send = Callable[[dict[str, Any]], Awaitable[None]]

API_ROOTS = frozenset({"v1", *(route.partition("/")[0] for route, _ in endpoints)})
METHODS = b"GET, POST, DELETE"
NAMED_HEADERS = (
    "authorization",
    "content-type",
    "x-api-key",
    # Added by the SDKs when they run in a browser.
    "idempotency-key",
    "user-agent",
    "x-client-request-id",
)
ALLOWED_HEADER = re.compile(rf"(?:{'|'.join(NAMED_HEADERS)}|openai-[a-z0-9-]+|x-stainless-[a-z0-9-]+)")
EXPOSED_HEADERS = ", ".join(
    [
        "x-request-id",
        "retry-after",
        "x-should-retry",
        *(f"x-ratelimit-{what}-{of}" for what in ("limit", "remaining", "reset") for of in ("requests", "tokens")),
    ]
).encode()
MAX_AGE_SECONDS = b"7200"  # the longest that browsers cache a preflight


def is_api(path: str) -> bool:
    """Whether ``path`` belongs to the API, with or without ``/v1``."""
    return path.removeprefix("/").partition("/")[0] in API_ROOTS


def with_cors(scope: Scope, send: Send) -> Send:
    """``send``, with the headers that let a page of an allowed origin read the response."""
    if not settings.RESPONSES_CORS_ORIGINS or not is_api(scope["path"]):
        return send
    # Also without an allowed origin: a cache must not give that response to a page of an allowed origin.
    added = [(b"vary", b"Origin")]
    origin = allowed_origin(scope)
    if origin:
        added += [(b"access-control-allow-origin", origin), (b"access-control-expose-headers", EXPOSED_HEADERS)]

    async def wrapped(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *added]}
        await send(message)

    return wrapped


def is_preflight(scope: Scope) -> bool:
    """Whether the request is a CORS preflight for an allowed origin. Preflights never have a key."""
    return (
        scope["method"] == "OPTIONS"
        and bool(header(scope, b"access-control-request-method"))
        and is_api(scope["path"])
        and bool(allowed_origin(scope))
    )


async def answer_preflight(scope: Scope, send: Send) -> None:
    """Answer with the methods and headers that a page may send. ``send`` adds the origin (:func:`with_cors`)."""
    requested = header(scope, b"access-control-request-headers").lower().split(",")
    names = [name for part in requested if ALLOWED_HEADER.fullmatch(name := part.strip())] or NAMED_HEADERS
    headers = [
        (b"access-control-allow-methods", METHODS),
        (b"access-control-allow-headers", ", ".join(names).encode()),
        (b"access-control-max-age", MAX_AGE_SECONDS),
        (b"content-length", b"0"),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
