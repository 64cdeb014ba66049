"""Requests to a running server besides the SDK, and checks of its state."""

import socket
import time
from collections.abc import Callable
from typing import Any

import httpx

from tests.perf.latency import request_bytes

from .server import LiveServer

JSON = {"content-type": "application/json"}
LONG = "[[slow: 0.05]][[tokens: 2000]]"
"""An input whose answer takes longer than any test."""


def check_envelope(answer: httpx.Response, status: int, code: str | None, param: str | None = None) -> dict[str, Any]:
    """Check that the answer is an error in OpenAI's form with a request id. Returns its body."""
    assert answer.status_code == status, answer.text
    assert answer.headers["x-request-id"].startswith("req_")
    assert answer.headers["content-type"] == "application/json"
    error: dict[str, Any] = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == code
    assert error["param"] == param
    assert error["message"].endswith((".", "?"))
    return error


def open_request(server: LiveServer, *, stream: bool) -> socket.socket:
    """Send a request that takes long, and read the answer until it runs."""
    host, port, request = request_bytes(server.url, {"input": LONG, "stream": stream}, server.key)
    connection = socket.create_connection((host, port), timeout=20)
    connection.sendall(request)
    if stream:
        received = b""
        while received.count(b"output_text.delta") < 3:
            received += connection.recv(65536)
    else:
        time.sleep(0.5)
    return connection


def active(server: LiveServer) -> int:
    """The number of responses that have not ended."""
    rows = server.rows("SELECT COUNT(*) FROM responses_api_response WHERE status IN ('queued', 'in_progress')")
    return int(rows[0][0])


def status(server: LiveServer, web: int = 0) -> dict[str, Any]:
    """The answer of `/v1/status`."""
    with server.http(web=web) as http:
        value: dict[str, Any] = http.get("/status").raise_for_status().json()
    return value


def metrics(server: LiveServer, web: int = 0) -> dict[str, float]:
    """The samples of `/v1/metrics` by their series."""
    with server.http(web=web) as http:
        lines = http.get("/metrics").raise_for_status().text.splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def eventually(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Whether ``condition`` becomes true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False
