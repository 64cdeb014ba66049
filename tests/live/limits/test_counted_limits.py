"""Limits under concurrent requests, on one or two web processes: exactly as many are accepted as allowed."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.live.client import active, eventually, status
from tests.live.launch import SHAPES, Launch
from tests.live.server import LiveServer

MODEL = "smollm2-135m"
AT_ONCE = 40
JOBS, JOBS_PER_KEY, QUEUE, SLOTS = 10, 6, 12, 2
ENTRIES, BYTES = 8, 40_000
SLOW = "[[tokens: 200]][[slow: 0.5]]"


@pytest.fixture(scope="module", params=SHAPES)
def crowded(request: pytest.FixtureRequest, launch: Launch) -> Iterator[LiveServer]:
    """A server with low limits."""
    with launch(
        request.param,
        RESPONSES_BACKGROUND_MAX_JOBS=str(JOBS),
        RESPONSES_MAX_QUEUE=str(QUEUE),
        RESPONSES_BATCH_SIZE=str(SLOTS),
    ) as server:
        yield server


def test_background_jobs_at_once(crowded: LiveServer) -> None:
    """Exactly the limit is accepted, the others are told to retry."""
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
    """As many as may run and wait are accepted, or a key's share of them; the others are told to retry."""
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


@pytest.fixture(scope="module", params=SHAPES)
def narrow(request: pytest.FixtureRequest, launch: Launch) -> Iterator[LiveServer]:
    """A server with a small store and a limit on the jobs of a key."""
    with launch(
        request.param,
        RESPONSES_BACKGROUND_MAX_JOBS=str(2 * AT_ONCE),
        RESPONSES_BACKGROUND_MAX_JOBS_PER_KEY=str(JOBS_PER_KEY),
        RESPONSES_STORE_MAX_ENTRIES=str(ENTRIES),
        RESPONSES_STORE_MAX_BYTES=str(BYTES),
    ) as server:
        server.key = server.key or server.make_key("crowd")
        yield server


def test_background_jobs_of_a_key_at_once(narrow: LiveServer) -> None:
    """A key has exactly its limit of jobs, and another key has its own."""
    other = narrow.make_key("other")
    together = threading.Barrier(AT_ONCE)
    accepted: list[tuple[str, str]] = []

    def create(number: int) -> int:
        key = other if number % 2 else narrow.key
        with narrow.http(web=number % narrow.web, key=key) as http:
            together.wait()
            answer = http.post("/responses", json={"model": MODEL, "input": SLOW, "background": True})
        if answer.status_code == 200:
            accepted.append((key, answer.json()["id"]))
        return answer.status_code

    with ThreadPoolExecutor(AT_ONCE) as threads:
        statuses = Counter(threads.map(create, range(AT_ONCE)))
    for key, response_id in accepted:
        with narrow.http(key=key) as http:
            http.post(f"/responses/{response_id}/cancel")
    assert Counter(key for key, _ in accepted) == {narrow.key: JOBS_PER_KEY, other: JOBS_PER_KEY}
    assert statuses == {200: 2 * JOBS_PER_KEY, 429: AT_ONCE - 2 * JOBS_PER_KEY}


@pytest.mark.parametrize("size", [10, 5_000])
def test_stored_responses_at_once(narrow: LiveServer, size: int) -> None:
    """The store never exceeds its limits and is full at the end: in entries if they are small, in bytes if large."""
    assert eventually(lambda: active(narrow) == 0)
    done = threading.Event()
    seen: list[tuple[int, int]] = []

    def watch() -> None:
        while not done.is_set():
            store = status(narrow)["store"]
            seen.append((store["entries"], store["bytes"]))

    def create(number: int) -> int:
        """Send a request again, as it is told to, while the bytes of running ones fill the store."""
        with narrow.http(web=number % narrow.web) as http:
            while (answer := http.post("/responses", json={"model": MODEL, "input": "a" * size})).status_code == 429:
                time.sleep(0.05)
            return answer.status_code

    with ThreadPoolExecutor(AT_ONCE + 1) as threads:
        watching = threads.submit(watch)
        statuses = Counter(threads.map(create, range(AT_ONCE)))
        done.set()
        watching.result()
    assert statuses == {200: AT_ONCE}
    assert max(entries for entries, _ in seen) <= ENTRIES
    # The figure includes running responses, which may take as much again.
    assert max(size_bytes for _, size_bytes in seen) <= 2 * BYTES
    assert eventually(lambda: active(narrow) == 0)
    store = status(narrow)["store"]
    assert store["entries"] <= ENTRIES
    assert store["bytes"] <= BYTES
    assert store["entries"] == ENTRIES or store["bytes"] * (1 + 1 / store["entries"]) > BYTES
