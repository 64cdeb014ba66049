"""A fast client with a choice of behaviours, also bad ones: one socket, one request, prepared bytes."""

from __future__ import annotations

import contextlib
import re
import select
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

CHUNK_BYTES = 1 << 20
START_BYTES = 4096
"""How much of an answer is recorded."""
RECEIVE_BYTES = 64 * 1024
"""The receive buffer of a client that reads nothing."""
SEND_BYTES = 5 << 20
"""More than the send buffer of the server's socket: smaller answers are buffered by the system, not by the server."""


class Behaviour(StrEnum):
    """The behaviour of a client."""

    COMPLETE = "sends all, reads all"
    DISCONNECTS_SENDING = "disconnects while sending"
    DISCONNECTS_WAITING = "disconnects after sending"
    DISCONNECTS_READING = "disconnects while reading"
    READS_NOTHING = "sends all and reads nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to send."""

    method: str
    target: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def head(self, port: int) -> bytes:
        lines = {"Host": f"127.0.0.1:{port}", "Connection": "close"}
        if self.body or self.method in ("POST", "PUT", "PATCH"):
            lines |= {"Content-Type": "application/json", "Content-Length": str(len(self.body))}
        lines |= self.headers
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"{self.method} {self.target} HTTP/1.1\r\n{text}\r\n".encode("latin-1", "replace")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. The status is 0 if the connection was closed, or the time was over, before there was one."""

    status: int
    seconds: float
    size: int
    start: bytes
    is_late: bool = False
    """Whether the time was over before its end."""
    is_buffered: bool = False
    """Whether a client that didn't read for a long time can still read the whole answer."""

    @property
    def text(self) -> str:
        return self.start.decode("utf-8", "replace")


def send(
    request: Request,
    port: int,
    *,
    behaviour: Behaviour = Behaviour.COMPLETE,
    timeout: float = 120.0,
    patience: float = 8.0,
) -> Answer:
    """Send a request and read its answer to the end.

    A client that reads nothing waits ``patience`` seconds before it reads the rest.
    """
    began = time.monotonic()
    data = [memoryview(request.head(port)), memoryview(request.body)]
    withheld = len(request.body) // 2 if behaviour is Behaviour.DISCONNECTS_SENDING else 0
    received = bytearray()
    size = 0
    with socket.socket() as connection:
        if behaviour is Behaviour.READS_NOTHING:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        connection.settimeout(10)
        connection.connect(("127.0.0.1", port))
        connection.setblocking(False)
        while True:
            remaining = timeout - (time.monotonic() - began)
            if remaining <= 0:
                return _answer(received, size, began, is_late=True)
            unsent = sum(map(len, data)) > withheld
            if not unsent and behaviour in (Behaviour.DISCONNECTS_SENDING, Behaviour.DISCONNECTS_WAITING):
                return _answer(received, size, began)
            if not unsent and behaviour is Behaviour.READS_NOTHING:
                # A large answer may begin late, so the client waits from its first byte on.
                if not select.select([connection], [], [], remaining)[0]:
                    return _answer(received, size, began, is_late=True)
                time.sleep(patience)
                return _read_rest(connection, began)
            reads = [] if behaviour is Behaviour.READS_NOTHING else [connection]
            readable, writable, _ = select.select(reads, [connection] if unsent else [], [], remaining)
            if writable and not _write(connection, data):
                data = []
            if readable:
                chunk = _read(connection)
                size += len(chunk)
                received += chunk[: START_BYTES - len(received)]
                if not chunk or behaviour is Behaviour.DISCONNECTS_READING:
                    return _answer(received, size, began)


def _read_rest(connection: socket.socket, began: float) -> Answer:
    """The chunk of an answer that can still be read."""
    received, size = bytearray(), 0
    connection.settimeout(2)
    with contextlib.suppress(OSError):
        while chunk := connection.recv(CHUNK_BYTES):
            size += len(chunk)
            received += chunk[: START_BYTES - len(received)]
    head = bytes(received).partition(b"\r\n\r\n")[0]
    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    is_whole = length is not None and size >= int(length[1]) + len(head)
    return replace(_answer(received, size, began), is_buffered=is_whole and size > SEND_BYTES)


def _write(connection: socket.socket, data: list[memoryview]) -> bool:
    """Send the next bytes. False if the connection is closed."""
    while data and not data[0]:
        data.pop(0)
    if data:
        try:
            data[0] = data[0][connection.send(data[0][:CHUNK_BYTES]) :]
        except BlockingIOError:
            pass
        except OSError:
            return False
    return True


def _read(connection: socket.socket) -> bytes:
    with contextlib.suppress(ConnectionError):
        return connection.recv(CHUNK_BYTES)
    return b""


def _answer(received: bytearray, size: int, began: float, *, is_late: bool = False) -> Answer:
    status = received[9:12]
    return Answer(
        int(status) if status.isdigit() else 0, time.monotonic() - began, size, bytes(received), is_late=is_late
    )
