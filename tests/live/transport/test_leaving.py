"""Clients that leave: their generation stops, its slot is free, and nothing is stored."""

import socket
from urllib.parse import urlsplit

import httpx
import pytest

from tests.live.client import LONG, active, eventually, open_request
from tests.live.server import LiveServer
from tests.perf.latency import request_bytes


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_stops_its_generation(server: LiveServer, *, stream: bool) -> None:
    """The row is deleted soon after the connection closes; the next request is served."""
    with open_request(server, stream=stream):
        assert active(server) == 1
    assert eventually(lambda: active(server) == 0)
    with server.http() as http:
        assert http.post("/responses", json={"input": "next"}).status_code == 200


def test_a_running_foreground_response_cannot_be_read_yet(server: LiveServer) -> None:
    """While it runs, its id is 404 for GET, and 409 for deleting or continuing it."""
    with server.http() as http, http.stream("POST", "/responses", json={"input": LONG, "stream": True}) as answer:
        lines = answer.iter_lines()
        opening = next(line for line in lines if line.startswith("data: "))
        response_id = httpx.Response(200, content=opening.removeprefix("data: ")).json()["response"]["id"]
        with server.http() as other:
            assert other.get(f"/responses/{response_id}").status_code == 404
            refused = other.delete(f"/responses/{response_id}")
            assert refused.status_code == 409
            assert refused.headers["x-should-retry"] == "false"
            chained = other.post("/responses", json={"input": "go on", "previous_response_id": response_id})
            assert chained.status_code == 409
            assert "in" in chained.json()["error"]["message"]


def test_a_reader_that_does_not_read_is_disconnected(server: LiveServer) -> None:
    """A stalled reader loses its connection after the write timeout, and its generation stops."""
    parts = urlsplit(server.url)
    assert parts.hostname
    assert parts.port
    host, port, request = request_bytes(server.url, {"input": "[[tokens: 60000]]", "stream": True}, server.key)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((host, port))
        connection.sendall(request)
        assert eventually(lambda: active(server) == 1)
        assert eventually(lambda: active(server) == 0, 30), "the generation of a reader that does not read still runs"
