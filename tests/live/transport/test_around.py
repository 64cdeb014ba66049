"""Status, metrics and CORS of running servers: every web process reports the same."""

import contextlib
import threading
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.live.client import check_envelope, eventually, metrics, status
from tests.live.launch import Launch
from tests.live.server import LiveServer

PAGE = "https://chat.example.com"


def test_every_web_process_reports_all(server: LiveServer) -> None:
    """The generations and requests of each are in the figures of all."""
    workers = 1 if server.web == 1 else 2
    time.sleep(2.5)  # other tests' counts are added within two seconds
    before = metrics(server)
    for web in range(server.web):
        server.client(web=web).responses.create(input="hi", model="smollm2-135m")
    created, completed = (
        'mlx_responses_http_requests_total{route="create",status="2xx"}',
        'mlx_responses_generations_total{status="completed"}',
    )
    for web in range(server.web):

        def is_counted(web: int = web) -> bool:
            after = metrics(server, web)
            return all(after[name] - before.get(name, 0) == server.web for name in (created, completed))

        assert eventually(is_counted), metrics(server, web)
        shown = status(server, web)
        assert len(shown["workers"]) == workers
        assert shown["store"]["entries"] >= server.web
        assert shown["store"]["bytes"] > 0
        assert metrics(server, web)["mlx_responses_first_token_seconds_count"] >= server.web


@pytest.fixture
def slow(launch: Launch) -> Iterator[LiveServer]:
    """One slot, twenty tokens per second."""
    with launch("embedded", RESPONSES_SCRIPTED_TOKEN_SECONDS="0.05", RESPONSES_BATCH_SIZE="1") as server:
        yield server


def test_running_requests_are_shown_until_their_client_leaves(slow: LiveServer) -> None:
    """Within a second the slot is free and nothing waits."""
    opened = threading.Event()
    leave = threading.Event()

    def read(*, first: bool) -> None:
        body = {"input": "word " * 400, "stream": True}
        with slow.http() as http, contextlib.suppress(httpx.ReadTimeout):
            # The second waits for its headers: it leaves by a timeout.
            timeout = httpx.Timeout(30, read=30 if first else 3)
            with http.stream("POST", "/responses", json=body, timeout=timeout) as answer:
                opened.set()
                for _ in answer.iter_bytes():
                    if leave.is_set():
                        return

    readers = [threading.Thread(target=read, kwargs={"first": first}) for first in (True, False)]
    readers[0].start()
    assert opened.wait(10)
    readers[1].start()
    assert eventually(lambda: (status(slow)["running"], status(slow)["waiting"]) == (1, 1)), status(slow)
    leave.set()
    for reader in readers:
        reader.join()
    assert eventually(lambda: status(slow)["running"] + status(slow)["waiting"] == 0, 1.0), status(slow)


def test_status_and_metrics_need_a_key_where_keys_exist(keyed_server: LiveServer) -> None:
    """Without one the answer is that of every endpoint; the liveness check needs none."""
    key = keyed_server.make_key("watch")
    root = keyed_server.url.removesuffix("/v1")
    for address in (keyed_server.url + "/status", root + "/status", root + "/metrics"):
        check_envelope(httpx.get(address), 401, "invalid_api_key")
        assert httpx.get(address, headers={"authorization": f"Bearer {key}"}).status_code == 200
    assert httpx.get(root + "/healthz").status_code == 200


@pytest.fixture
def open_to_a_page(launch: Launch) -> Iterator[LiveServer]:
    with launch("embedded", RESPONSES_CORS_ORIGINS=PAGE) as server:
        yield server


def test_a_page_of_an_allowed_origin_can_stream(open_to_a_page: LiveServer) -> None:
    """A preflight, then a stream whose answer names the page's origin; a foreign page is refused."""
    asked = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,x-stainless-os"}
    with open_to_a_page.http() as http:
        preflight = http.options("/responses", headers={"origin": PAGE, **asked})
        assert preflight.status_code == 204
        assert preflight.headers["access-control-allow-headers"] == "authorization, x-stainless-os"
        body = {"input": "hi", "stream": True}
        answer = http.post("/responses", json=body, headers={"origin": PAGE})
        assert "response.completed" in answer.text
        assert answer.headers["access-control-allow-origin"] == PAGE
        foreign = http.post("/responses", json=body, headers={"origin": "https://evil.example"})
        check_envelope(foreign, 403, "insufficient_permissions")
        assert "access-control-allow-origin" not in foreign.headers
