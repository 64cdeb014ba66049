"""`kill -9` in the middle of everything."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from .conftest import running
from .server import LiveServer
from .test_leaving import active, open_request

MODEL = "smollm2-135m"
LONG = "[[tokens: 100]][[slow: 0.02]]"


@pytest.fixture(params=["embedded", "team"])
def fragile_server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LiveServer]:
    """A server that the test may kill."""
    yield from running(request, tmp_path, RESPONSES_LEASE_SECONDS="2")


def test_after_a_crash_nothing_stays_running_and_nothing_stored_is_lost(fragile_server: LiveServer) -> None:
    """Killed during a stream and started again, the server has the stored responses and no row that runs for ever."""
    server = fragile_server
    made = server.client().responses.create(input="keep me", model="smollm2-135m")
    with open_request(server, stream=True), open_request(server, stream=False):
        server.kill()
    server.start()
    assert server.client(web=0).responses.retrieve(made.id).output_text == "You said: keep me"
    deadline = time.monotonic() + 30
    while active(server):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    chained = server.client().responses.create(input="go on", previous_response_id=made.id, model="smollm2-135m")
    assert chained.output_text == "You said: go on"


@pytest.mark.parametrize(("number", "stream"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_a_server_told_to_stop_ends_in_order(tmp_path: Path, number: int, *, stream: bool) -> None:
    """Status 0, also while a stream is open or a JSON request waits; both are told, neither is left hanging."""
    from .server import embedded

    server = embedded(tmp_path)
    server.start()
    with open_request(server, stream=stream) as connection:
        assert server.stop(number) == 0
        received = b""
        while part := connection.recv(65536):
            received += part
    assert b"The server is stopping." in received
    assert (b"event: response.failed" in received and b"data: [DONE]" in received) == stream


@pytest.mark.parametrize("shape", ["embedded", "team"])
def test_a_server_told_to_stop_lets_responses_end(shape: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Within its grace time; meanwhile it admits nothing."""
    request.param = shape
    for server in running(request, tmp_path, RESPONSES_GRACE_SECONDS="20"):
        events = iter(server.client().responses.create(model=MODEL, input=LONG, stream=True))
        for _ in range(5):
            next(events)
        assert server.process is not None
        server.process.terminate()
        refused = -1
        kinds = []
        for event in events:
            kinds.append(event.type)
            if len(kinds) == 40:
                refused = refusal(server)
        assert kinds[-1] == "response.completed"
        assert refused in (0, 503)  # 0 where it listens no longer
        assert server.process.wait(40) == 0


def refusal(server: LiveServer) -> int:
    """The status of a request, 0 when nobody answers."""
    try:
        with server.http() as http:
            return http.post("/responses", json={"input": "hello"}).status_code
    except httpx.HTTPError:
        return 0
