"""Limits that settings name, each with its status."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.live.client import JSON, active, check_envelope, eventually, open_request
from tests.live.launch import Launch
from tests.live.server import LiveServer, embedded, free_ports, running
from tests.processes import run_python


@pytest.fixture(scope="module")
def tight_server(launch: Launch) -> Iterator[LiveServer]:
    """A server with minimal limits."""
    with launch(
        "embedded",
        RESPONSES_BODY_MAX_BYTES="2000",
        RESPONSES_BATCH_SIZE="1",
        RESPONSES_MAX_QUEUE="1",
        RESPONSES_FOREGROUND_TIMEOUT_SECONDS="3",
        RESPONSES_KEEPALIVE_SECONDS="0.2",
        RESPONSES_LEASE_SECONDS="2",
    ) as server:
        yield server


@pytest.mark.parametrize("stream", [False, True])
def test_a_body_over_the_limit(tight_server: LiveServer, *, stream: bool) -> None:
    """413, streamed or not, by its length or as it comes in chunks; a body at the limit is read."""
    with tight_server.http() as http:
        payload = {"input": "a" * 3000, "stream": stream}
        check_envelope(http.post("/responses", json=payload), 413, "request_too_large")
        pieces = (b'{"input": "' + b"a" * 1000 for _ in range(5))
        check_envelope(http.post("/responses", content=pieces, headers=JSON), 413, "request_too_large")
        frame = len(b'{"input": ""}')
        whole = b'{"input": "' + b"a" * (2000 - frame) + b'"}'
        assert http.post("/responses", content=whole, headers=JSON).status_code == 200


def test_a_full_queue(tight_server: LiveServer) -> None:
    """One runs, one waits, the third is told to retry; nothing of it is left."""
    with open_request(tight_server, stream=True), open_request(tight_server, stream=False), tight_server.http() as http:
        for stream in (False, True):
            answer = http.post("/responses", json={"input": "one too many", "stream": stream})
            check_envelope(answer, 503, "server_overloaded")
            assert int(answer.headers["retry-after"]) >= 1
        assert active(tight_server) == 2


def test_a_response_that_takes_too_long(tight_server: LiveServer) -> None:
    """Its stream ends in `response.failed` with the reason; keep-alives come before."""
    assert eventually(lambda: active(tight_server) == 0, 15)
    with tight_server.http() as http:
        request = {"input": "[[wait: 1]][[slow: 0.5]][[tokens: 100]]", "stream": True}
        with http.stream("POST", "/responses", json=request) as answer:
            text = answer.read().decode()
    assert ": ping\n\n" in text
    assert text.count("event: response.failed") == 1
    assert "longer than this server allows" in text
    assert text.endswith("data: [DONE]\n\n")


def test_a_port_in_use_ends_the_start_with_one_line(tight_server: LiveServer, tmp_path: Path) -> None:
    """No traceback, and a status other than 0."""
    ended = run_python(
        "manage.py", "serve", data_dir=tmp_path, PORT=str(tight_server.port), RESPONSES_ENGINE="scripted"
    )
    assert ended.returncode == 1
    assert f"Could not listen on 127.0.0.1:{tight_server.port}: [Errno " in ended.stderr
    assert "in use" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_data_directory_in_use_ends_the_start_with_one_line(tight_server: LiveServer) -> None:
    """Two servers on one database would take each other's requests."""
    ended = run_python(
        "manage.py", "serve", data_dir=tight_server.data_dir, PORT=str(free_ports(1)), RESPONSES_ENGINE="scripted"
    )
    assert ended.returncode == 1
    assert tight_server.process is not None
    assert f"RESPONSES_DATA_DIR is in use: process {tight_server.process.pid} serves on" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_two_servers_run_from_one_checkout(tight_server: LiveServer, embedded_server: LiveServer) -> None:
    """With different ports and data directories they share nothing."""
    assert embedded_server.port != tight_server.port
    made = embedded_server.client().responses.create(input="hi", model="smollm2-135m")
    with tight_server.http() as http:
        check_envelope(http.get(f"/responses/{made.id}"), 404, "not_found")


def test_a_server_that_the_network_reaches_does_not_start_without_a_key(tmp_path: Path) -> None:
    """One line gives the remedy. With a key it starts, and requests need one."""
    ended = run_python("manage.py", "serve", data_dir=tmp_path, HOST="0.0.0.0", RESPONSES_ENGINE="scripted")
    assert ended.returncode == 1
    assert "make key" in ended.stderr
    assert "Traceback" not in ended.stderr
    server = embedded(tmp_path, HOST="0.0.0.0")
    key = server.make_key("default")
    with running(server):
        with server.http() as http:
            check_envelope(http.post("/responses", json={"input": "a"}), 401, "invalid_api_key")
        assert httpx.get(f"{server.url}/models", headers={"x-api-key": key}).status_code == 200
