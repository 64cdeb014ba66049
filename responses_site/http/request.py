"""A request that starts when its headers have arrived, and whose body follows as the application reads it."""

import asyncio
import time
from typing import Any
from urllib.parse import unquote

from daphne.http_protocol import WebRequest
from daphne.utils import HEADER_NAME_RE, INVALID_HEADER_VALUE_BYTES

from responses_api.errors import ServerError

from .channel import envelope, unreadable

# A client could change every path by naming a root path, and no other protocol can be upgraded to.
IGNORED_HEADERS = (b"Daphne-Root-Path", b"Upgrade")
READ_AHEAD_BYTES = 256 * 1024
"""How much of a body may wait for the application before reading is paused."""
DRAINED_BYTES = 64 * 1024
"""The longest rest of a body that is drained, to reuse the connection after an early response."""


class Inbox:
    """The queue of messages from a request to its application."""

    def __init__(self, request: "Request") -> None:
        self._request = request
        self._messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def put_nowait(self, message: dict[str, Any]) -> None:
        self._messages.put_nowait(message)

    async def get(self) -> dict[str, Any]:
        """ASGI's ``receive``."""
        if self._messages.empty():
            self._request.ask_for_body()
        message = await self._messages.get()
        self._request.took(len(message.get("body", b"")))
        return message


class Request(WebRequest):
    """A request. Its application starts when the headers have arrived, and may answer before the body has."""

    method: bytes
    application_queue: Any
    has_begun = False
    is_whole = False
    """Whether the whole body has arrived."""
    _waiting = 0
    """Bytes of the body that the application has not read."""
    _rest: int | None = 0
    """Bytes of the body that have not arrived; None when its length is unknown."""
    _expects_continue = False

    def begin(self, method: bytes, uri: bytes, version: bytes, length: int | None) -> None:
        """Pass the request to the application, with its method in capitals, as ASGI wants it."""
        self.has_begun = True
        self.method, self.uri, self.clientproto = method.upper(), uri, version
        self.path, _, self.query_string = uri.partition(b"?")
        self.request_start = time.time()
        self._rest = length
        for name in IGNORED_HEADERS:
            self.requestHeaders.removeHeader(name)
        expected = self.requestHeaders.getRawHeaders(b"Expect", [b""])[0]
        self._expects_continue = length != 0 and version == b"HTTP/1.1" and expected.lower() == b"100-continue"
        if not self._is_readable():
            self.path = b"/"
            self.basic_error(400, b"Bad Request", "")
            return
        self.client_addr = [str(self.client.host), self.client.port]
        self.server_addr = [str(self.host.host), self.host.port]
        self.application_queue = self.server.create_application(self, self._scope())

    def _is_readable(self) -> bool:
        """Whether it is valid for ASGI: its URI is ASCII, and its headers are valid HTTP."""
        if not self.uri.isascii():
            return False
        return all(
            HEADER_NAME_RE.fullmatch(name)
            and not any(INVALID_HEADER_VALUE_BYTES.intersection(value) for value in values)
            for name, values in self.requestHeaders.getAllRawHeaders()
        )

    def _scope(self) -> dict[str, Any]:
        """The ASGI scope, without headers whose name has an underscore, which WSGI confuses (CVE-2015-0219)."""
        return {
            "type": "http",
            "http_version": self.clientproto.split(b"/")[-1].decode("ascii"),
            "method": self.method.decode("ascii"),
            "path": unquote(self.path.decode("ascii")),
            "raw_path": self.path,
            "root_path": self.server.root_path,
            "scheme": "http",
            "query_string": self.query_string,
            "headers": [
                (name.lower(), value)
                for name, values in self.requestHeaders.getAllRawHeaders()
                if b"_" not in name
                for value in values
            ],
            "client": self.client_addr,
            "server": self.server_addr,
        }

    # --- the body ----------------------------------------------------------------------------------------------------

    def handleContentChunk(self, data: bytes) -> None:
        """Pass on a part of the body; discard it when the response is complete."""
        if self._rest is not None:
            self._rest -= len(data)
        if self.finished or not data or self.application_queue is None:
            return
        self._expects_continue = False
        self._waiting += len(data)
        self.application_queue.put_nowait({"type": "http.request", "body": data, "more_body": True})
        if self._waiting > READ_AHEAD_BYTES:
            self.channel.pause_reading()

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """Called by Twisted when the whole body has arrived."""
        self.is_whole = True
        if not self.finished and self.application_queue is not None:
            self.application_queue.put_nowait({"type": "http.request", "body": b"", "more_body": False})

    def took(self, size: int) -> None:
        """The application has read ``size`` bytes of the body."""
        was_paused, self._waiting = self._waiting > READ_AHEAD_BYTES, self._waiting - size
        if was_paused and self._waiting <= READ_AHEAD_BYTES and not self.finished and self.channel is not None:
            self.channel.resume_reading()

    def ask_for_body(self) -> None:
        """The application waits for the body: tell a client that sent `Expect: 100-continue` to send it."""
        if self._expects_continue and not self.startedWriting and not self.finished and self.channel is not None:
            self._expects_continue = False
            self.channel.ask_for_body()

    # --- the answer --------------------------------------------------------------------------------------------------

    def handle_reply(self, message: dict[str, Any]) -> None:
        if self.finished or self.channel is None:
            return
        if message["type"] == "http.response.start" and not self.is_whole and not self._is_worth_draining():
            self.channel.persistent = 0
            self.responseHeaders.setRawHeaders(b"Connection", [b"close"])
        if message["type"] == "http.response.body" and self.method == b"HEAD":
            # Twisted drops the first part only; a second one would be read as the start of the next response.
            message = {**message, "body": b""}
        super().handle_reply(message)

    def _is_worth_draining(self) -> bool:
        """Whether the rest of the body will arrive, and is short enough to drain it and reuse the connection."""
        return not self._expects_continue and self._rest is not None and self._rest <= DRAINED_BYTES

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:
        """Daphne's hook for errors outside of the application: an invalid header, or an error of the server."""
        if self._response_started:
            if not self.finished and self.channel is not None:
                self.channel.abort()
            return
        error = unreadable() if status < 500 else ServerError("The server had an error while it processed the request.")
        headers, content = envelope(error)
        self.handle_reply({"type": "http.response.start", "status": error.status, "headers": headers})
        self.handle_reply({"type": "http.response.body", "body": content})

    def leave(self) -> None:
        """Send the application a disconnect: the rest of the body can't be read."""
        self.finished = 1
        if self.application_queue is not None:
            self.send_disconnect()
        self.server.protocol_disconnected(self)

    def connectionLost(self, reason: Any) -> None:
        if not self.finished:
            super().connectionLost(reason)
