"""Reads request bodies, after the headers were checked, within limits per body, per caller and in total."""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from django.conf import settings

from responses_api.api.request_scope import Scope, header
from responses_api.errors import Overloaded, RateLimited, RequestTimeout, RequestTooLarge, UnsupportedMediaType

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
T = TypeVar("T")

RETRY_SECONDS = 5
STEP_BYTES = 1 << 20


class ClientLeft(Exception):
    """The client closed the connection before its request was complete."""


class Bodies:
    """The bytes of bodies that this process has in memory, by their sender."""

    def __init__(self) -> None:
        self._sizes: Counter[str] = Counter()
        self._lock = threading.Lock()

    def add(self, owner: str, size: int) -> None:
        """Add bytes. Raises :class:`RateLimited` or :class:`Overloaded` when they are too many."""
        most: int = settings.RESPONSES_BODIES_MAX_BYTES
        most_per_key: int = settings.RESPONSES_BODIES_MAX_BYTES_PER_KEY
        with self._lock:
            if self._sizes[owner] + size > most_per_key:
                raise RateLimited(
                    f"The request bodies that this key is sending have more than {most_per_key} bytes together "
                    "(RESPONSES_BODIES_MAX_BYTES_PER_KEY). Send them one after another.",
                    retry_after=RETRY_SECONDS,
                )
            if self._sizes.total() + size > most:
                raise Overloaded(
                    f"The server is receiving requests of more than {most} bytes together "
                    "(RESPONSES_BODIES_MAX_BYTES). Try again in a few seconds.",
                    retry_after=RETRY_SECONDS,
                )
            self._sizes[owner] += size

    def remove(self, owner: str, size: int) -> None:
        """Subtract bytes that were added."""
        with self._lock:
            self._sizes[owner] -= size
            if not self._sizes[owner]:
                del self._sizes[owner]

    @property
    def total(self) -> int:
        """The bytes of all senders."""
        return self._sizes.total()


bodies = Bodies()


class BodyShare:
    """The bytes of one request's body. May be released more than once, on any thread."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._size = 0

    def add(self, size: int) -> None:
        bodies.add(self._owner, size)
        self._size += size

    def release(self) -> None:
        size, self._size = self._size, 0
        bodies.remove(self._owner, size)


def has_body(scope: Scope) -> bool:
    """Whether the headers declare a body."""
    return header(scope, b"content-length") not in ("", "0") or bool(header(scope, b"transfer-encoding"))


def refuse_large(scope: Scope, limit: int) -> None:
    """Raise :class:`RequestTooLarge` when the headers declare a body beyond the limit."""
    declared = header(scope, b"content-length")
    if declared.isascii() and declared.isdigit() and int(declared) > limit:
        raise too_large(limit)


def refuse_unreadable(scope: Scope) -> None:
    """Raise :class:`UnsupportedMediaType` for a body that is not plain JSON by its headers.

    A page of another site needs a preflight to send `application/json`, but not for some other types.
    """
    encoding = header(scope, b"content-encoding").strip().lower()
    if encoding not in ("", "identity"):
        raise UnsupportedMediaType(
            f"The body has the `Content-Encoding` {encoding[:40]!r}, and this server reads bodies as they are. "
            "Send it without compression."
        )
    kind = header(scope, b"content-type").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        sent = f"`Content-Type: {kind[:80]}`" if kind else "no `Content-Type`"
        raise UnsupportedMediaType(
            f"The body was sent with {sent}, and this server reads JSON. Send the header "
            "`Content-Type: application/json`."
        )


async def read_body(receive: Receive, share: BodyShare, limit: int) -> bytes:
    """The whole body, whose bytes are added to ``share``.

    Raises :class:`RequestTooLarge` as soon as it is known to be over the limit, and :class:`RequestTimeout` when it
    takes longer than `RESPONSES_READ_TIMEOUT_SECONDS` for each MiB that has begun.
    """
    parts: list[bytes] = []
    size = 0
    loop = asyncio.get_running_loop()
    began = loop.time()
    while True:
        try:
            async with asyncio.timeout_at(began + settings.RESPONSES_READ_TIMEOUT_SECONDS * (1 + size // STEP_BYTES)):
                message = await receive()
        except TimeoutError:
            raise RequestTimeout(
                f"After {loop.time() - began:.0f} seconds only {size} bytes of the request body have arrived "
                "(RESPONSES_READ_TIMEOUT_SECONDS). Send it faster."
            ) from None
        if message["type"] == "http.disconnect":
            raise ClientLeft
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise too_large(limit)
        if part:
            share.add(len(part))
            parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


async def while_connected(work: Coroutine[Any, Any, T], receive: Receive) -> T:
    """The result of ``work``, which is cancelled when the client leaves. Raises :class:`ClientLeft` then."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(client_left(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientLeft
    finally:
        working.cancel()
        leaving.cancel()


async def client_left(receive: Receive) -> None:
    """Return when the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


def too_large(limit: int) -> RequestTooLarge:
    """The 413 for a body."""
    return RequestTooLarge(f"The request body is larger than the {limit} bytes that this server accepts. Send less.")


def replay(body: bytes, receive: Receive) -> Receive:
    """A ``receive`` that returns this body, then the client's disconnect; other messages are discarded."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        if pending:
            return pending.pop()
        await client_left(receive)
        return {"type": "http.disconnect"}

    return replayed
