"""Costs of a connection: refused bodies, readers that do not read, idle connections."""

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.live.launch import Launch
from tests.live.server import LiveServer

SECONDS = 30
MOST = 16
JSON = b"Content-Type: application/json\r\n"
LARGE = 42 << 20


@pytest.fixture(scope="module")
def tight(launch: Launch) -> Iterator[LiveServer]:
    """An open server with short timeouts."""
    with launch(
        "embedded",
        RESPONSES_READ_TIMEOUT_SECONDS="2",
        RESPONSES_IDLE_TIMEOUT_SECONDS="4",
        RESPONSES_STREAM_WRITE_TIMEOUT_SECONDS="1",
        RESPONSES_MAX_CONNECTIONS=str(MOST),
    ) as server:
        yield server


class Wire:
    """A connection, byte by byte."""

    def __init__(self, server: LiveServer, *, receive_buffer: int = 0) -> None:
        parts = urlsplit(server.url)
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(SECONDS)
        self.socket.connect((parts.hostname, parts.port))
        self.received = b""

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *details: object) -> None:
        self.socket.close()

    def send(self, line: bytes, headers: bytes = b"", body: bytes = b"") -> None:
        self.socket.sendall(line + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n" + headers + b"\r\n" + body)

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next answer, which must have a length."""
        while b"\r\n\r\n" not in self.received:
            self._receive()
        head, _, self.received = self.received.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        length = int(headers.get("content-length", 0))
        while len(self.received) < length:
            self._receive()
        body, self.received = self.received[:length], self.received[length:]
        return int(status.split()[1]), headers, body

    def _receive(self) -> None:
        part = self.socket.recv(65_536)
        assert part, f"the connection was closed after {self.received!r}"
        self.received += part

    def is_closed(self) -> bool:
        """Whether the server has closed it without sending more."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True


def sized(size: int) -> bytes:
    return JSON + b"Content-Length: %d\r\n" % size


def resident(server: LiveServer) -> int:
    """Resident memory of the server's process in bytes."""
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found
    return int(found[1]) << 10


REFUSED = {
    b"POST /v1/nothing": 404,
    b"PUT /v1/responses": 405,
    b"POST /v1/responses": 413,
}


@pytest.mark.parametrize(("line", "status"), REFUSED.items(), ids=str)
def test_the_body_of_a_refused_request_is_not_awaited(tight: LiveServer, line: bytes, status: int) -> None:
    """The answer comes before the first byte of the body, and the connection ends."""
    with Wire(tight) as wire:
        wire.send(line, sized(1 << 40))
        got, headers, body = wire.answer()
        assert (got, headers["connection"]) == (status, "close")
        assert json.loads(body)["error"]["message"]
        assert wire.is_closed()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_refused_upload_costs_no_memory(tight: LiveServer) -> None:
    """It is discarded as it comes; a client that sends all of it before reading still gets the answer."""
    before = resident(tight)
    for headers in (sized(LARGE) + b"Origin: null\r\n", JSON + b"Origin: null\r\nTransfer-Encoding: chunked\r\n"):
        with Wire(tight) as wire:
            wire.send(b"POST /v1/responses", headers)
            piece = b"[" * (1 << 20)
            if b"chunked" in headers:
                piece = b"%x\r\n%s\r\n" % (len(piece), piece)
            for _ in range(LARGE >> 20):
                wire.socket.sendall(piece)
            assert wire.answer()[0] == 403
    assert resident(tight) - before < 20 << 20


def test_a_connection_continues_after_a_short_rest_of_a_body(tight: LiveServer) -> None:
    """A body that comes after its answer is not parsed as the next request."""
    with Wire(tight) as wire:
        wire.send(b"POST /v1/nothing", sized(20))
        status, headers, _ = wire.answer()
        assert (status, "connection" in headers) == (404, False)
        wire.socket.sendall(b"GET / HTTP/1.1\r\n\r\n..")
        wire.send(b"GET /healthz")
        assert wire.answer()[2] == b'{"status": "ok"}'


def test_requests_and_their_bodies_follow_each_other(tight: LiveServer) -> None:
    """Sent at once, or byte by byte."""
    body = b'{"metadata": {}}'
    request = b"POST /v1/conversations HTTP/1.1\r\nHost: 127.0.0.1\r\n" + sized(len(body)) + b"\r\n" + body
    chunked = JSON + b"Transfer-Encoding: chunked\r\n"
    with Wire(tight) as wire:
        wire.socket.sendall(request * 3 + b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert [wire.answer()[0] for _ in range(4)] == [200] * 4
        for place in range(len(request)):
            wire.socket.sendall(request[place : place + 1])
        assert wire.answer()[0] == 200
        wire.send(b"POST /v1/conversations", chunked, b"3\r\n{  \r\n1\r\n}\r\n0\r\n\r\n")
        assert wire.answer()[0] == 200


def test_continue_is_sent_only_if_the_request_is_allowed(tight: LiveServer) -> None:
    """`Expect: 100-continue`."""
    expect = b"Expect: 100-continue\r\n"
    with Wire(tight) as wire:
        wire.send(b"POST /v1/conversations", sized(2) + expect)
        assert wire.answer()[0] == 100
        wire.socket.sendall(b"{}")
        assert wire.answer()[0] == 200
    with Wire(tight) as wire:
        wire.send(b"POST /v1/conversations", sized(2) + expect + b"Origin: null\r\n")
        status, headers, _ = wire.answer()
        assert (status, headers["connection"]) == (403, "close")
        assert wire.is_closed()


@pytest.mark.parametrize("line", [b"POST /v1/conversations", b"POST /v1/nothing"])
def test_an_invalid_chunk_ends_its_request(tight: LiveServer, line: bytes) -> None:
    """400, or the answer that was already sent."""
    with Wire(tight) as wire:
        wire.send(line, JSON + b"Transfer-Encoding: chunked\r\n", b"1\r\n{\r\n")
        time.sleep(0.3)
        wire.socket.sendall(b"zz\r\n")
        assert wire.answer()[0] == (400 if b"conversations" in line else 404)
        assert wire.is_closed()


def test_slow_requests_end(tight: LiveServer) -> None:
    """Headers and bodies that come byte by byte are 408, and a connection without a request is closed."""
    with Wire(tight) as idle, Wire(tight) as head, Wire(tight) as body:
        body.send(b"POST /v1/conversations", sized(100_000))
        began = time.monotonic()
        for _ in range(5):
            head.socket.sendall(b"G")
            body.socket.sendall(b" ")
            time.sleep(0.3)
        for wire in (head, body):
            status, headers, answer = wire.answer()
            assert (status, headers["connection"]) == (408, "close")
            assert json.loads(answer)["error"]["code"] == "request_timeout"
        assert time.monotonic() - began < SECONDS / 2
        assert idle.is_closed()
        assert time.monotonic() - began < SECONDS / 2


@pytest.mark.parametrize("headers", [b"", b"Connection: close\r\n"], ids=["kept", "closed"])
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("path", [b"/v1/openapi.json", b"items"])
def test_a_reader_that_does_not_read_a_whole_answer_is_disconnected(
    tight: LiveServer, path: bytes, headers: bytes
) -> None:
    """Like the reader of a stream; nothing stays in memory for it."""
    if path == b"items":
        with tight.http() as http:
            content = [{"role": "user", "content": "x" * 4_000_000}]
            made = http.post("/conversations", json={"items": content}).json()
            path = f"/v1/conversations/{made['id']}/items".encode()
    with Wire(tight, receive_buffer=4096) as wire:
        for _ in range(20):
            wire.send(b"GET " + path, headers)
            if headers:
                break
        assert wire.socket.recv(1) == b"H"
        deadline = time.monotonic() + SECONDS
        while connections(tight) > 0:
            assert time.monotonic() < deadline, "the connection of a reader that does not read is still open"
            time.sleep(0.1)


def connections(server: LiveServer) -> int:
    """The number of open connections of the server's process, without opening one."""
    assert server.process is not None
    port = f":{server.port:04X}"
    lines = Path(f"/proc/{server.process.pid}/net/tcp").read_text().splitlines()[1:]
    own = {link for link in links(server.process.pid) if link.startswith("socket:")}
    rows = [line.split() for line in lines]
    return sum(row[1].endswith(port) and row[3] != "0A" and f"socket:[{row[9]}]" in own for row in rows)


def links(pid: int) -> Iterator[str]:
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            yield str(path.readlink())
        except OSError:
            continue


def test_a_new_connection_replaces_an_idle_one(tight: LiveServer) -> None:
    """Idle connections exclude nobody; if all are in use, the next one is told to retry."""
    with ExitStack() as stack:
        idle = [stack.enter_context(Wire(tight)) for _ in range(MOST + 4)]
        with Wire(tight) as wire:
            wire.send(b"GET /healthz")
            assert wire.answer()[0] == 200
        assert sum(wire.is_closed() for wire in idle[:4]) == 4
    with ExitStack() as stack:
        body = json.dumps({"input": "[[slow: 0.05]][[tokens: 2000]]", "stream": True}).encode()
        readers = [stack.enter_context(Wire(tight)) for _ in range(MOST)]
        for wire in readers:
            wire.send(b"POST /v1/responses", sized(len(body)), body)
            wire._receive()
        refused = stack.enter_context(Wire(tight))
        status, headers, _ = refused.answer()
        assert (status, headers["retry-after"], headers["connection"]) == (503, "1", "close")
        assert refused.is_closed()


def test_an_early_answer_is_read_by_usual_clients(tight: LiveServer) -> None:
    """Even those that send the whole body before they read; the connection can be used again."""
    with tight.http() as http:
        for size in (10, 100_000, 10 << 20):
            answer = http.post("/nothing", content=b"x" * size, headers={"content-type": "application/json"})
            assert answer.status_code == 404
            assert http.get("/models").status_code == 200
