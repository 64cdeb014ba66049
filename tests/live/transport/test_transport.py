"""Invalid HTTP: an answer has an error object and a request id, and the server keeps serving."""

import json
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.live.server import LiveServer

SECONDS = 30
BODY = b'{"input": "hi"}'
HOST = b"Host: 127.0.0.1"
KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"


def keyed(server: LiveServer, request: bytes) -> bytes:
    """A request, with the key that the server needs."""
    return request.replace(HOST, HOST + b"\r\nX-API-Key: " + server.key.encode()) if server.key else request


def exchange(server: LiveServer, request: bytes) -> tuple[int, dict[str, str], Any]:
    """Status, headers and JSON of the answer to these bytes. The server must close the connection."""
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=SECONDS) as connection:
        connection.sendall(keyed(server, request))
        received = b"".join(iter(lambda: connection.recv(65_536), b""))
    head, _, body = received.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return int(status.split()[1]), headers, json.loads(body)


def asked(line: bytes, *headers: bytes, body: bytes = b"") -> bytes:
    """A request that is valid except for the given parts."""
    length = [b"Content-Type: application/json", b"Content-Length: %d" % len(body)] if body else []
    return b"\r\n".join([line, HOST, b"Connection: close", *headers, *length, b"", body])


GET = b"GET /v1/models HTTP/1.1"
POST = b"POST /v1/responses HTTP/1.1"
REFUSED = {
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
    "HTTP/0.9": b"GET /v1/models\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a path that is not ASCII": asked("GET /v1/models/é HTTP/1.1".encode()),
    "a query that is not ASCII": asked("GET /v1/models?é HTTP/1.1".encode()),
    "a method that is not ASCII": asked("GÉT /v1/models HTTP/1.1".encode()),
    "a long path": asked(b"GET /v1/models/" + b"x" * 40_000 + b" HTTP/1.1"),
    "a long header": asked(GET, b"a: " + b"x" * 40_000),
    "many headers": asked(GET, *[b"a: b"] * 600),
    "a header without a colon": asked(GET, b"nonsense"),
    "a header with a space in its name": asked(GET, b"a b: c"),
    "a header with a parenthesis in its name": asked(GET, b"a(b: c"),
    "a header with a NUL": asked(GET, b"a: b\0c"),
    "a header with a control character": asked(GET, b"a: b\x0bc"),
    "a key with a control character": asked(GET, "authorization: Bearer Å\u0085".encode()),
    "a length that is not a number": asked(POST, b"Content-Length: x"),
    "a negative length": asked(POST, b"Content-Length: -1"),
    "two lengths": asked(POST, b"Content-Length: 15", body=BODY),
    "a length of 5,000 digits": asked(POST, b"Content-Length: " + b"9" * 5000),
    "an unknown coding": asked(POST, b"Transfer-Encoding: gzip"),
    "a broken chunk": asked(POST, b"Transfer-Encoding: chunked", b"", b"zz", b""),
}


@pytest.mark.parametrize("request_bytes", REFUSED.values(), ids=REFUSED)
def test_invalid_http(server: LiveServer, request_bytes: bytes) -> None:
    """400 with the reason."""
    status, headers, answer = exchange(server, request_bytes)
    assert status == 400
    assert headers["x-request-id"].startswith("req_")
    assert headers["content-type"] == "application/json"
    assert answer["error"]["type"] == "invalid_request_error"
    assert answer["error"]["message"].startswith("The request is not valid HTTP/1.1.")


def test_methods_in_lower_case(server: LiveServer) -> None:
    """They equal those in upper case, with a body too."""
    assert exchange(server, asked(GET.replace(b"GET", b"get")))[0] == 200
    assert exchange(server, asked(POST.replace(b"POST", b"post"), body=BODY))[0] == 200


@pytest.mark.parametrize("root", ["/v1", "/x", "é"])
def test_a_root_path_header_is_ignored(server: LiveServer, root: str) -> None:
    """Daphne would accept it from any client."""
    header = f"Daphne-Root-Path: {root}".encode()
    assert exchange(server, asked(GET, header))[0] == 200
    assert exchange(server, asked(POST, header, body=BODY))[0] == 200
    assert exchange(server, asked(POST.replace(b"/v1/", b"/x/v1/"), header, body=BODY))[0] == 404


@pytest.mark.parametrize("extra", [KEY, b"", b"Sec-WebSocket-Protocol: \xff\r\n" + KEY])
def test_there_are_no_web_sockets(server: LiveServer, extra: bytes) -> None:
    """A server may ignore an upgrade: the request is served as if it had none."""
    headers = [b"Upgrade: websocket", *extra.splitlines()]
    status, answer_headers, answer = exchange(server, asked(b"GET /v1/responses HTTP/1.1", *headers))
    assert (status, answer_headers["allow"]) == (405, "post")
    assert answer["error"]["code"] == "method_not_allowed"
    assert exchange(server, asked(POST, *headers, body=BODY))[0] == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/", "/docs"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "BREW"])
def test_read_only_routes_refuse_other_methods(server: LiveServer, path: str, method: str) -> None:
    """405, with or without a CSRF token."""
    status, headers, answer = exchange(server, asked(f"{method} {path} HTTP/1.1".encode()))
    assert (status, headers["allow"]) == (405, "get, head")
    assert answer["error"]["code"] == "method_not_allowed"


@pytest.mark.parametrize("path", ["/docs", "/v1/openapi.json", "/v1/models"])
def test_head_has_no_body_however_long(server: LiveServer, path: str) -> None:
    """The next answer on the same connection is complete."""
    head = f"HEAD {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=SECONDS) as connection:
        connection.sendall(keyed(server, head + asked(b"GET /healthz HTTP/1.1")))
        received = b"".join(iter(lambda: connection.recv(65_536), b""))
    first, second, body = received.split(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 200 ")
    assert second.startswith(b"HTTP/1.1 200 ")
    assert json.loads(body) == {"status": "ok"}
