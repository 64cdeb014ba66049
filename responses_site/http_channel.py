"""What can't be read as HTTP is answered as everything else is: with the error envelope and a request id."""

from http import HTTPStatus
from typing import Any

import orjson
from twisted.web.http import HTTPChannel

from responses_api.errors import ApiError, InvalidRequest
from responses_api.ids import new_id

SERVER_NAME = "mlx-responses"

Headers = list[tuple[bytes, bytes]]


def unreadable() -> ApiError:
    """The fault of a request that never became one."""
    return InvalidRequest(
        "The request is not valid HTTP/1.1. Check its first line, its headers, and the declared length of its body: "
        f"addresses are ASCII, and the first line and all headers have at most {HTTPChannel.totalHeadersSize} bytes."
    )


def envelope(error: ApiError) -> tuple[Headers, bytes]:
    """The headers and the body of an error's answer."""
    body = orjson.dumps(error.envelope())
    return [
        (b"Content-Type", b"application/json"),
        (b"Content-Length", str(len(body)).encode()),
        (b"x-request-id", new_id("req_").encode()),
    ], body


class Channel(HTTPChannel):
    """A connection. Twisted would answer what it can't read without a body, or not at all."""

    def lineLengthExceeded(self, line: bytes) -> None:
        self._respondToBadRequestAndDisconnect()

    def headerReceived(self, line: bytes) -> bool:
        try:
            received: bool = super().headerReceived(line)
        except ValueError:  # a length of so many digits that Python reads no number in it
            self._respondToBadRequestAndDisconnect()
            return False
        return received

    def _respondToBadRequestAndDisconnect(self) -> None:
        error = unreadable()
        headers, body = envelope(error)
        headers += [(b"Connection", b"close"), (b"Server", SERVER_NAME.encode())]
        lines = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}".encode()]
        lines += [name + b": " + value for name, value in headers]
        transport: Any = self.transport
        transport.write(b"\r\n".join([*lines, b"", body]))
        self.loseConnection()
