"""The first thing a request meets: an id, a bounded and once parsed body, and the door that answers it.

What streams goes to a stream consumer: a create request with ``stream: true``, which gets the parsed body, and a stored
response that is retrieved with ``stream=true``. Everything else goes to Django, with the parsed body too.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
import structlog
from django.conf import settings
from django.http.request import split_domain_port, validate_host

from responses_api.api.request_scope import BODY, PAYLOAD, REQUEST_ID, Scope, header, parse_body, query_pairs
from responses_api.errors import ApiError, InvalidRequest, RequestTooLarge
from responses_api.ids import new_id

from .cors import answer_preflight, is_preflight, with_cors
from .request_count import counted

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]

CREATE_PATHS = frozenset({"/v1/responses", "/responses"})
STORED_PATH = re.compile(r"(?:/v1)?/responses/(?!(?:input_tokens|compact)$)[^/]+")
BODY_METHODS = frozenset({"POST", "PUT", "PATCH", "DELETE"})
PAGES = ("/admin", "/static/")


class ClientLeft(Exception):
    """The client closed the connection before its request was whole."""


class ApiRouter:
    """The ASGI application: Django for what is whole, the consumer for what streams."""

    def __init__(self, *, django: Application, stream: Application, retrieved_stream: Application) -> None:
        self._django = cancelled_by_disconnect(django)
        self._stream = stream
        self._retrieved_stream = retrieved_stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close"})
            return
        request_id = new_id("req_")
        scope[REQUEST_ID] = request_id
        send = with_cors(scope, counted(scope, with_request_id(send, request_id)))
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._route(scope, receive, send)
            except ApiError as error:
                await send_error(send, error)
            except ClientLeft:
                return

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        check_host(scope)
        if is_preflight(scope):
            await answer_preflight(scope, send)
            return
        if retrieves_stream(scope):
            await self._retrieved_stream(scope, receive, send)
            return
        if scope["path"].startswith(PAGES) or scope["method"] not in BODY_METHODS:
            await self._django(scope, receive, send)
            return
        body = await read_body(scope, receive)
        scope[BODY] = body
        application = self._django
        if scope["path"] in CREATE_PATHS and scope["method"] == "POST":
            scope[PAYLOAD] = parse_body(body)
            if isinstance(scope[PAYLOAD], dict) and scope[PAYLOAD].get("stream") is True:
                application = self._stream
        await application(scope, replay(body, receive), send)


def retrieves_stream(scope: Scope) -> bool:
    """Whether a stored response is asked for as a stream."""
    if scope["method"] != "GET" or STORED_PATH.fullmatch(scope["path"]) is None:
        return False
    return dict(query_pairs(scope)).get("stream") in ("true", "1")


def with_request_id(send: Send, request_id: str) -> Send:
    """``send``, with the header ``x-request-id`` on the response."""

    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (b"x-request-id", request_id.encode())]}
        await send(message)

    return wrapped


def cancelled_by_disconnect(application: Application) -> Application:
    """``application``, told that the client has left when its task is cancelled, and waited for.

    Django's handler does not pass a cancellation on: it waits for the request's thread and blocks the loop that the
    thread needs. A client's leaving it handles well.
    """

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        cancelled = asyncio.Event()

        async def receive_or_disconnect() -> Message:
            message, leaving = asyncio.ensure_future(receive()), asyncio.ensure_future(cancelled.wait())
            try:
                await asyncio.wait((message, leaving), return_when=asyncio.FIRST_COMPLETED)
                return message.result() if message.done() else {"type": "http.disconnect"}
            finally:
                message.cancel()
                leaving.cancel()

        running = asyncio.ensure_future(application(scope, receive_or_disconnect, send))
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            cancelled.set()
            await asyncio.wait((running,))
            raise

    return wrapped


def check_host(scope: Scope) -> None:
    """Refuse foreign host names, as Django does for what it answers: they are how a web page reaches a local server."""
    name = header(scope, b"host")
    domain, _ = split_domain_port(name)
    if name and not validate_host(domain, settings.ALLOWED_HOSTS):
        raise InvalidRequest(
            "This server does not answer to that host name. RESPONSES_ALLOWED_HOSTS lists the names it has."
        )


async def read_body(scope: Scope, receive: Receive) -> bytes:
    """The whole body. Raises :class:`RequestTooLarge` as soon as it is known to be over the limit."""
    limit: int = settings.RESPONSES_BODY_MAX_BYTES
    declared = header(scope, b"content-length")
    if declared.isascii() and declared.isdigit() and int(declared) > limit:
        raise too_large(limit)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise too_large(limit)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def too_large(limit: int) -> RequestTooLarge:
    """The 413 for a body."""
    return RequestTooLarge(f"The request body is larger than the {limit} bytes that this server accepts. Send less.")


def replay(body: bytes, receive: Receive) -> Receive:
    """A ``receive`` that gives the body that has been read, then what comes after it."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return pending.pop() if pending else await receive()

    return replayed


async def send_error(send: Send, error: ApiError) -> None:
    """Answer with an envelope."""
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in error.headers.items()]
    body = orjson.dumps(error.envelope())
    headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
