"""A connection: requests start when their headers have arrived, and invalid HTTP gets a JSON error like all others."""

import asyncio
import time
from http import HTTPStatus
from typing import Any

import orjson
from django.conf import settings
from twisted.internet.protocol import connectionDone
from twisted.web.http import HTTPChannel

from responses_api.errors import ApiError, InvalidRequest, Overloaded, RequestTimeout
from responses_api.ids import new_id

from .connections import Connections

SERVER_NAME = "mlx-responses"

Headers = list[tuple[bytes, bytes]]


def unreadable() -> ApiError:
    """The error for a request that is not valid HTTP."""
    return InvalidRequest(
        "The request is not valid HTTP/1.1. Check its first line, its headers, and the declared length of its body: "
        f"addresses are ASCII, and the first line and all headers have at most {HTTPChannel.totalHeadersSize} bytes."
    )


def envelope(error: ApiError) -> tuple[Headers, bytes]:
    """The headers and the body of an error response."""
    body = orjson.dumps(error.envelope())
    return [
        *((name.encode(), value.encode("latin-1")) for name, value in error.headers.items()),
        (b"Content-Type", b"application/json"),
        (b"Content-Length", str(len(body)).encode()),
        (b"Cache-Control", b"no-store"),
        (b"x-request-id", new_id("req_").encode()),
    ], body


class Channel(HTTPChannel):
    """A connection.

    Twisted passes on a request once its body is complete. Here the request starts when its headers have arrived, and
    its body follows as the application reads it. The response may therefore be complete before the body: the rest of
    the body is discarded, and the connection is reused or closed. Closing it at once would reset it, and the client
    could lose the response; so only its writing side is closed first.
    """

    requests: list[Any]
    _networkProducer: Any
    connections: Connections
    _closing = False
    _drains_since: float | None = None
    _begins_since: float | None = None
    _waits_since: float | None = None
    _written = 0
    _drained: "asyncio.Future[None] | None" = None

    # --- timeouts ----------------------------------------------------------------------------------------------------

    def connectionMade(self) -> None:
        super().connectionMade()
        self.setTimeout(None)  # `Connections` checks the timeouts of all connections
        self._waits_since = time.monotonic()
        if not self.connections.admit(self):
            self._answer(Overloaded("The server has reached its limit of connections. Try again in a few seconds."))
            self.loseConnection()

    def connectionLost(self, reason: Any = connectionDone) -> None:
        self.connections.remove(self)
        self._wake()
        super().connectionLost(reason)

    @property
    def waits_since(self) -> float | None:
        return self._waits_since

    @property
    def begins_since(self) -> float | None:
        return self._begins_since

    @property
    def drains_since(self) -> float | None:
        return self._drains_since

    def refuse_slow_headers(self) -> None:
        """Refuse a request whose headers take too long."""
        seconds = settings.RESPONSES_READ_TIMEOUT_SECONDS
        self._refuse(
            RequestTimeout(
                f"The headers of the request have not arrived within {seconds:g} seconds "
                "(RESPONSES_READ_TIMEOUT_SECONDS)."
            )
        )

    def close(self) -> None:
        """Close the connection once what was written is sent."""
        self.loseConnection()

    def abort(self) -> None:
        """Close the connection at once; unsent bytes are lost."""
        transport: Any = self.transport
        transport.abortConnection()

    # --- writing -----------------------------------------------------------------------------------------------------

    @property
    def unsent(self) -> int:
        transport: Any = self.transport
        return len(transport.dataBuffer) - transport.offset + transport._tempDataLen

    @property
    def taken(self) -> int:
        return self._written - self.unsent

    def write(self, data: bytes) -> None:
        """Send what the socket takes at once. Twisted would have the event loop watch the socket for every part of a
        stream, which is three calls of the system instead of one.
        """
        self._written += len(data)
        transport: Any = self.transport
        if transport.connected and not transport.disconnecting and not self.unsent:
            sent = transport.writeSomeData(data)
            if isinstance(sent, int):  # otherwise the connection is lost, of which Twisted finds out next
                data = data[sent:]
        if data:
            super().write(data)

    def writeSequence(self, iovec: Any) -> None:
        self.write(b"".join(iovec))

    def writeHeaders(self, version: bytes, code: bytes, reason: bytes, headers: Any) -> None:
        before = self.unsent
        super().writeHeaders(version, code, reason, headers)
        self._written += self.unsent - before

    def resumeProducing(self) -> None:
        super().resumeProducing()
        self._wake()

    async def drained(self) -> None:
        """Wait until the client has read what was written, or has left."""
        if self._waitingForTransport and not self._closing:
            if self._drained is None:
                self._drained = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._drained)

    def _wake(self) -> None:
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None

    # --- requests ----------------------------------------------------------------------------------------------------

    def dataReceived(self, data: bytes) -> None:
        if self._waits_since is not None:
            self._begins_since, self._waits_since = time.monotonic(), None
        if not self._closing:
            super().dataReceived(data)

    def lineReceived(self, line: bytes) -> None:
        if not self._closing:
            super().lineReceived(line)

    def rawDataReceived(self, data: bytes) -> None:
        if not self._closing:
            super().rawDataReceived(data)

    def lineLengthExceeded(self, line: bytes) -> None:
        self._respondToBadRequestAndDisconnect()

    def headerReceived(self, line: bytes) -> bool:
        try:
            received: bool = super().headerReceived(line)
        except ValueError:  # a length with more digits than Python converts to a number
            self._respondToBadRequestAndDisconnect()
            return False
        return received

    def allHeadersReceived(self) -> None:
        """Start the request, before its body has arrived."""
        request = self.requests[-1]
        self.persistent = self.checkPersistence(request, self._version)
        self._begins_since = None
        request.begin(self._command, self._path, self._version, self.length)

    def allContentReceived(self) -> None:
        if self._closing:
            return
        request = self.requests[-1]
        super().allContentReceived()
        if request.finished:  # the response was complete before the body
            self._end(request)

    def requestDone(self, request: Any) -> None:
        if request.is_whole:
            self._end(request)
            return
        self._drains_since = time.monotonic()
        self.resume_reading()
        if not self.persistent:
            self._close_after_rest()

    def _end(self, request: Any) -> None:
        self._drains_since, self._waits_since = None, time.monotonic()
        super().requestDone(request)

    def pause_reading(self) -> None:
        """Pause reading: the application has not read the part of the body that has arrived."""
        self._networkProducer.pauseProducing()

    def resume_reading(self) -> None:
        """Resume reading."""
        if not self._waitingForTransport:
            self._networkProducer.resumeProducing()

    def ask_for_body(self) -> None:
        """Tell a client that sent `Expect: 100-continue` to send the body."""
        self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    # --- refusals ----------------------------------------------------------------------------------------------------

    def _respondToBadRequestAndDisconnect(self) -> None:
        self._refuse(unreadable())

    def _refuse(self, error: ApiError) -> None:
        """Answer a request that is invalid, or whose body is, with an error; then close the connection."""
        if self._closing:
            return
        request = self.requests[-1] if self.requests else None
        if request is not None and request.has_begun:
            if request.startedWriting:
                self.abort()
                return
            request.leave()
        self._answer(error)
        self._close_after_rest()

    def _answer(self, error: ApiError) -> None:
        headers, body = envelope(error)
        headers += [(b"Connection", b"close"), (b"Server", SERVER_NAME.encode())]
        lines = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}".encode()]
        lines += [name + b": " + value for name, value in headers]
        self.write(b"\r\n".join([*lines, b"", body]))

    def _close_after_rest(self) -> None:
        """Close the writing side, and discard what still arrives until the client closes the connection."""
        self._closing = True
        self._waits_since = self._begins_since = None
        self._drains_since = time.monotonic()
        self._wake()
        transport: Any = self.transport
        transport.unregisterProducer()
        transport.loseWriteConnection()
        transport.resumeProducing()
