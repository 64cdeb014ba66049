"""The router: gives a request an id, authenticates it, reads and parses its body once, and passes it to its handler.

The headers are checked first: the host, the caller, the type and the length of the body. Only then is the body of a
POST read.

Streams go to a stream consumer: a create request with ``stream: true``, of a response or a chat completion, which gets
the parsed body, and a stored response that is retrieved with ``stream=true``. Everything else goes to Django, with the
parsed body.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson
import structlog
from django.conf import settings
from django.http.request import split_domain_port, validate_host
from django.urls import Resolver404, ResolverMatch, resolve

from responses_api.api.authentication import identify
from responses_api.api.body_value import INLINE_BYTES, parse_body, parsed_body
from responses_api.api.endpoint import Endpoint
from responses_api.api.exceptions import as_api_error
from responses_api.api.request_scope import (
    BODY,
    CALLER,
    REQUEST_ID,
    Scope,
    header,
    query_pairs,
)
from responses_api.api.responses import ResponseView
from responses_api.caller import Caller
from responses_api.database.threads import in_database_thread
from responses_api.errors import ApiError, InvalidRequest
from responses_api.ids import new_id
from responses_api.readers.request_body import RequestBody

from .bodies import (
    BodyShare,
    ClientLeft,
    Message,
    Receive,
    has_body,
    read_body,
    refuse_large,
    refuse_unreadable,
    replay,
    while_connected,
)
from .cors import answer_preflight, is_preflight, with_cors
from .request_count import counted

Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]

API_URLS = "responses_api.api.urls"
ADMIN = "/admin/"
FORM_MAX_BYTES = 256 * 1024
"""Most bytes of a form that is sent to the admin."""
BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})


class ApiRouter:
    """The ASGI application: Django for whole responses, the consumers for streams."""

    def __init__(
        self, *, django: Application, streams: Mapping[type[Endpoint], Application], retrieved_stream: Application
    ) -> None:
        """``streams`` has an application for each view whose POST can be answered by a stream."""
        self._django = cancelled_by_disconnect(django)
        self._streams = streams
        self._retrieved_stream = retrieved_stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close"})
            return
        request_id = new_id("req_")
        scope[REQUEST_ID] = request_id
        send = with_cors(scope, counted(scope, with_own_headers(send, request_id)))
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
        match = api_route(scope)
        if match is None:
            await self._answer_page(scope, receive, send)
            return
        view: Any = match.func.cls  # type: ignore[attr-defined]  # of DRF's views
        if view.authentication_classes:
            scope[CALLER] = await caller(scope)
        if retrieves_stream(scope, view):
            await self._retrieved_stream(scope, replay(b"", receive), send)
            return
        if scope["method"] != "POST" or not hasattr(view, "post") or not view.reads_body:
            await self._django(scope, replay(b"", receive), send)
            return
        share = BodyShare(scope[CALLER].name)
        body = scope[BODY] = RequestBody(release=share.release)
        try:
            stream = self._streams.get(view)
            body.put(await self._read(scope, receive, share, is_optional=stream is None))
            application = stream if stream is not None and body.asks_for("stream") else self._django
            await application(scope, replay(b"", receive), send)
        finally:
            body.forget()

    async def _read(self, scope: Scope, receive: Receive, share: BodyShare, *, is_optional: bool) -> Any:
        """The value of the body, or the error of parsing it. A missing body that ``is_optional`` is an empty object."""
        if has_body(scope):
            refuse_unreadable(scope)
            refuse_large(scope, settings.RESPONSES_BODY_MAX_BYTES)
        body = await read_body(receive, share, settings.RESPONSES_BODY_MAX_BYTES)
        if not body and is_optional:
            return {}
        if len(body) <= INLINE_BYTES:
            return parse_body(body)
        return await while_connected(parsed_body(body), receive)

    async def _answer_page(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer requests for pages and unknown paths. Only the bodies of the admin's forms are read."""
        if not scope["path"].startswith(ADMIN) or scope["method"] not in BODY_METHODS:
            await self._django(scope, replay(b"", receive), send)
            return
        refuse_large(scope, FORM_MAX_BYTES)
        share = BodyShare("admin")
        try:
            body = await read_body(receive, share, FORM_MAX_BYTES)
            await self._django(scope, replay(body, receive), send)
        finally:
            share.release()


def api_route(scope: Scope) -> ResolverMatch | None:
    """The API's view for a path; ``None`` if the path is not the API's."""
    try:
        return resolve(scope["path"], API_URLS)
    except Resolver404:
        return None


async def caller(scope: Scope) -> Caller:
    """The caller. Raises an :class:`ApiError` when authentication fails or is impossible at the moment."""
    try:
        return await in_database_thread(identify, scope)
    except Exception as error:  # also errors of the database and of the server, which have their own responses
        raise as_api_error(error) from error


def retrieves_stream(scope: Scope, view: Any) -> bool:
    """Whether the request retrieves a stored response as a stream."""
    if scope["method"] != "GET" or view is not ResponseView:
        return False
    return dict(query_pairs(scope)).get("stream") in ("true", "1")


def with_own_headers(send: Send, request_id: str) -> Send:
    """``send``, with the header ``x-request-id``, and ``cache-control: no-store`` unless the response has its own."""

    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            if not any(name.lower() == b"cache-control" for name, _ in headers):
                headers.append((b"cache-control", b"no-store"))
            message = {**message, "headers": headers}
        await send(message)

    return wrapped


def cancelled_by_disconnect(application: Application) -> Application:
    """``application``, which receives a disconnect when its task is cancelled, and is awaited.

    Django's handler does not pass on a cancellation: it waits for the request's thread and blocks the event loop that
    the thread needs. It handles a disconnect correctly.
    """

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        cancelled = asyncio.Event()

        async def receive_or_disconnect() -> Message:
            message, cancelling = asyncio.ensure_future(receive()), asyncio.ensure_future(cancelled.wait())
            try:
                await asyncio.wait((message, cancelling), return_when=asyncio.FIRST_COMPLETED)
                return message.result() if message.done() else {"type": "http.disconnect"}
            finally:
                message.cancel()
                cancelling.cancel()

        running = asyncio.ensure_future(application(scope, receive_or_disconnect, send))
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            cancelled.set()
            await asyncio.wait((running,))
            raise

    return wrapped


def check_host(scope: Scope) -> None:
    """Refuse other host names, as Django does for its own requests, against DNS rebinding by web pages."""
    name = header(scope, b"host")
    domain, _ = split_domain_port(name)
    if name and not validate_host(domain, settings.ALLOWED_HOSTS):
        raise InvalidRequest(
            "This server does not answer to that host name. RESPONSES_ALLOWED_HOSTS lists the names it has."
        )


async def send_error(send: Send, error: ApiError) -> None:
    """Answer with the error's envelope."""
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in error.headers.items()]
    body = orjson.dumps(error.envelope())
    headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
