"""Limits hold when many come at once, on one web process or two: never one more, never fewer than there is room for."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.live.client import active, eventually, status
from tests.live.launch import SHAPES, Launch
from tests.live.server import LiveServer

MODEL = "smollm2-135m"
AT_ONCE = 60
JOBS, QUEUE, SLOTS = 10, 12, 2
SLOW = "[[tokens: 200]][[slow: 0.5]]"


@pytest.fixture(scope="module", params=SHAPES)
def crowded(request: pytest.FixtureRequest, launch: Launch) -> Iterator[LiveServer]:
    """A server with room for a few."""
    with launch(
        request.param,
        RESPONSES_BACKGROUND_MAX_JOBS=str(JOBS),
        RESPONSES_MAX_QUEUE=str(QUEUE),
        RESPONSES_BATCH_SIZE=str(SLOTS),
    ) as server:
        yield server


def test_background_jobs_at_once(crowded: LiveServer) -> None:
    """As many as may be are accepted, the others are told to come back."""
    together = threading.Barrier(AT_ONCE)
    accepted: list[str] = []

    def create(number: int) -> int:
        with crowded.http(web=number % crowded.web) as http:
            together.wait()
            answer = http.post("/responses", json={"model": MODEL, "input": SLOW, "background": True})
        if answer.status_code == 200:
            accepted.append(answer.json()["id"])
        return answer.status_code

    with ThreadPoolExecutor(AT_ONCE) as threads:
        statuses = Counter(threads.map(create, range(AT_ONCE)))
    with crowded.http() as http:
        for response_id in accepted:
            http.post(f"/responses/{response_id}/cancel")
    assert statuses == {200: JOBS, 429: AT_ONCE - JOBS}


def test_foreground_requests_at_once(crowded: LiveServer) -> None:
    """As many as run and wait together are accepted, or a key's share of them; the others are told to come back."""
    assert eventually(lambda: active(crowded) == 0)
    slots = sum(worker["slots"] for worker in status(crowded)["workers"])
    room = QUEUE + slots
    # A key may have the slots and three times the places that it leaves free.
    share = (slots + 3 * room) // 4
    together, answered = threading.Barrier(AT_ONCE), threading.Barrier(AT_ONCE)

    def create(number: int) -> int:
        with crowded.http(web=number % crowded.web) as http:
            together.wait()
            request = {"model": MODEL, "input": SLOW, "stream": True}
            with http.stream("POST", "/responses", json=request) as answer:
                answered.wait(timeout=30)
                return answer.status_code

    with ThreadPoolExecutor(AT_ONCE) as threads:
        statuses = Counter(threads.map(create, range(AT_ONCE)))
    if crowded.key:
        assert statuses == {200: share, 429: AT_ONCE - share}
    else:
        assert statuses == {200: room, 503: AT_ONCE - room}
