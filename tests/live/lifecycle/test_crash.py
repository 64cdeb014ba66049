"""`kill -9` at any time, and an orderly stop."""

import signal

import httpx
import pytest

from tests.live.client import active, eventually, open_request
from tests.live.launch import SHAPES, Launch, Shape
from tests.live.server import LiveServer

MODEL = "smollm2-135m"
LONG = "[[tokens: 100]][[slow: 0.02]]"


@pytest.mark.parametrize("shape", SHAPES)
def test_after_a_crash_no_row_stays_running_and_no_stored_response_is_lost(shape: Shape, launch: Launch) -> None:
    """Killed during a stream and started again, the server has the stored responses and no row that runs forever."""
    with launch(shape, RESPONSES_LEASE_SECONDS="2") as server:
        made = server.client().responses.create(input="keep me", model=MODEL)
        with open_request(server, stream=True), open_request(server, stream=False):
            server.kill()
        server.start()
        assert server.client(web=0).responses.retrieve(made.id).output_text == "You said: keep me"
        assert eventually(lambda: active(server) == 0, 30)
        chained = server.client().responses.create(input="go on", previous_response_id=made.id, model=MODEL)
        assert chained.output_text == "You said: go on"


@pytest.mark.parametrize(("number", "stream"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_a_server_told_to_stop_ends_in_order(launch: Launch, number: int, *, stream: bool) -> None:
    """Status 0, even while a stream is open or a JSON request waits; both get an end."""
    with launch("embedded") as server, open_request(server, stream=stream) as connection:
        assert server.stop(number) == 0
        received = b""
        while part := connection.recv(65536):
            received += part
    assert b"The server is stopping." in received
    assert (b"event: response.failed" in received and b"data: [DONE]" in received) == stream


@pytest.mark.parametrize("shape", SHAPES)
def test_a_server_told_to_stop_lets_responses_end(shape: Shape, launch: Launch) -> None:
    """Within its grace time; meanwhile it refuses new requests."""
    with launch(shape, RESPONSES_GRACE_SECONDS="20") as server:
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
        assert refused in (0, 503)  # 0 once it no longer listens
        assert server.process.wait(40) == 0


def refusal(server: LiveServer) -> int:
    """The status of a request, 0 if the connection is refused."""
    try:
        with server.http() as http:
            return http.post("/responses", json={"input": "hello"}).status_code
    except httpx.HTTPError:
        return 0
