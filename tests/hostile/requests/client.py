"""A client that costs little and behaves as badly as it is told to: one socket, one request, bytes made beforehand."""

from __future__ import annotations

import contextlib
import re
import select
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

STEP = 1 << 20
KEPT = 4096
RECEIVE_BYTES = 64 * 1024
"""What the socket of a client that reads nothing takes all the same."""
SEND_BYTES = 5 << 20
"""More than what the server's socket takes: an answer that is smaller is in the system's hands, not in the server's."""


class Manner(StrEnum):
    """How the client behaves."""

    WHOLE = "sends all, reads all"
    LEAVES_SENDING = "leaves in the middle of its request"
    LEAVES_WAITING = "leaves when all is sent"
    LEAVES_READING = "leaves after the first bytes of the answer"
    READS_NOTHING = "sends all and reads nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is sent."""

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
    """What came back. A status of 0: the connection ended, or the time, before there was one."""

    status: int
    seconds: float
    size: int
    start: bytes
    is_late: bool = False
    is_held: bool = False
    """Whether a client that reads nothing for long can have the whole answer afterwards."""

    @property
    def text(self) -> str:
        return self.start.decode("utf-8", "replace")


def send(
    request: Request, port: int, *, manner: Manner = Manner.WHOLE, timeout: float = 120.0, patience: float = 8.0
) -> Answer:
    """Send a request and read its answer to the end. `patience`: seconds that a client waits who reads nothing."""
    began = time.monotonic()
    data = [memoryview(request.head(port)), memoryview(request.body)]
    left = len(request.body) // 2 if manner is Manner.LEAVES_SENDING else 0
    received = bytearray()
    size = 0
    with socket.socket() as connection:
        if manner is Manner.READS_NOTHING:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        connection.settimeout(10)
        connection.connect(("127.0.0.1", port))
        connection.setblocking(False)
        while True:
            waiting = timeout - (time.monotonic() - began)
            if waiting <= 0:
                return _answer(received, size, began, is_late=True)
            unsent = sum(map(len, data)) > left
            if not unsent and manner in (Manner.LEAVES_SENDING, Manner.LEAVES_WAITING):
                return _answer(received, size, began)
            if not unsent and manner is Manner.READS_NOTHING:
                # A large answer may begin late: patience counts from its first byte.
                if not select.select([connection], [], [], waiting)[0]:
                    return _answer(received, size, began, is_late=True)
                time.sleep(patience)
                return _drained(connection, began)
            reads = [] if manner is Manner.READS_NOTHING else [connection]
            readable, writable, _ = select.select(reads, [connection] if unsent else [], [], waiting)
            if writable and not _write(connection, data):
                data = []
            if readable:
                part = _read(connection)
                size += len(part)
                received += part[: KEPT - len(received)]
                if not part or manner is Manner.LEAVES_READING:
                    return _answer(received, size, began)


def _drained(connection: socket.socket, began: float) -> Answer:
    """What is still to be had of an answer."""
    received, size = bytearray(), 0
    connection.settimeout(2)
    with contextlib.suppress(OSError):
        while part := connection.recv(STEP):
            size += len(part)
            received += part[: KEPT - len(received)]
    head = bytes(received).partition(b"\r\n\r\n")[0]
    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    is_whole = length is not None and size >= int(length[1]) + len(head)
    return replace(_answer(received, size, began), is_held=is_whole and size > SEND_BYTES)


def _write(connection: socket.socket, data: list[memoryview]) -> bool:
    """Send the next bytes; False when nobody takes them any more."""
    while data and not data[0]:
        data.pop(0)
    if data:
        try:
            data[0] = data[0][connection.send(data[0][:STEP]) :]
        except BlockingIOError:
            pass
        except OSError:
            return False
    return True


def _read(connection: socket.socket) -> bytes:
    with contextlib.suppress(ConnectionError):
        return connection.recv(STEP)
    return b""


def _answer(received: bytearray, size: int, began: float, *, is_late: bool = False) -> Answer:
    status = received[9:12]
    return Answer(
        int(status) if status.isdigit() else 0, time.monotonic() - began, size, bytes(received), is_late=is_late
    )
