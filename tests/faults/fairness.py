"""One project queues a thousand jobs: another's interactive request and its own job hardly notice."""

import concurrent.futures
import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from .cases import Case
from .places import Missing, Place, embedded_place, redis_place
from .poison import parsed, wait_until
from .work import MODEL

JOBS = 1000
TRIES = 25
TIMES = 1.5
FIRST = 16
TOKENS = 60
SETTINGS: dict[str, Any] = {
    "RESPONSES_SCRIPTED_TOKEN_SECONDS": "0.02",
    "RESPONSES_BATCH_SIZE": "8",
    "RESPONSES_LEASE_SECONDS": "6",
}


def first_token_seconds(http: httpx.Client) -> float:
    """From sending an interactive request to its first token; the request is then left."""
    started = time.perf_counter()
    payload = {"model": MODEL, "input": "[[tokens: 20]]", "stream": True}
    with http.stream("POST", "/responses", json=payload) as answer:
        for event in parsed(answer):
            if event["type"] == "response.output_text.delta":
                return time.perf_counter() - started
    raise AssertionError("an interactive request got no token")


def median_of(place: Place, key: str, tries: int) -> float:
    """The median time to the first token of several requests, one after the other."""
    times = []
    # A client of its own for each, since leaving closes the connection; making one takes longer than the request.
    clients = [place.server.http(key=key) for _ in range(tries)]
    for http in clients:
        with http:
            times.append(first_token_seconds(http))
        # Of no fixed length: it would always end at the same moment of the engine's step.
        time.sleep(random.uniform(0.2, 0.4))
    return statistics.median(times)


def queue_jobs(place: Place, key: str, count: int) -> None:
    """Have a project queue so many jobs, on all web processes."""
    with httpx.Client(headers={"authorization": f"Bearer {key}"}, timeout=60) as http:

        def create(number: int) -> None:
            url = place.server.urls[number % place.server.web]
            payload = {"model": MODEL, "input": f"[[tokens: {TOKENS}]]", "background": True}
            http.post(f"{url}/responses", json=payload).raise_for_status()

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(create, range(count)))


def fairness_case(place: Place, *, jobs: int) -> Case:
    """Measure idle, queue the jobs, measure again, and count who was begun before the other project's job."""
    case = Case(f"fairness, {place.name}")
    many, few = place.server.make_key("many"), place.server.make_key("few")
    median_of(place, few, 3)
    idle = median_of(place, few, TRIES)
    queue_jobs(place, many, jobs)
    before = begun(place)
    assert before < jobs - 100, "the jobs are over before anything could be measured"
    busy = median_of(place, few, TRIES)
    case.figures += [
        f"{jobs} jobs queued",
        f"first token idle {idle * 1000:.0f} ms, then {busy * 1000:.0f} ms ({busy / idle:.2f} times, limit {TIMES})",
    ]
    case.check(busy <= idle * TIMES, "the interactive request waits too long")
    others, seconds = begun_before(place, few)
    case.figures.append(
        f"a job had its first token after {seconds:.2f} s, {others} others had begun since it was queued"
    )
    case.check(others < FIRST, f"the other project's job was not among the first {FIRST}")
    left = jobs - begun(place)
    case.figures.append(f"{left} of the jobs still waited")
    case.check(left > 0, "all jobs had begun before the measurement ended")
    return case


def begun(place: Place) -> int:
    """How many background jobs a worker has ever had."""
    found = place.rows("SELECT COUNT(*) FROM responses_api_response WHERE background AND attempt > 0")
    return int(found[0][0])


def begun_before(place: Place, key: str) -> tuple[int, float]:
    """How many jobs were begun from a job's creation to its first token, and how long that was."""
    before = begun(place)
    started = time.perf_counter()
    payload = {"model": MODEL, "input": f"[[tokens: {TOKENS}]]", "background": True, "stream": True}
    with place.server.http(key=key) as http, http.stream("POST", "/responses", json=payload) as answer:
        for event in parsed(answer):
            if event["type"] == "response.output_text.delta":
                return begun(place) - before - 1, time.perf_counter() - started
    raise AssertionError("the job got no token")


def run_fairness(work: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """In both shapes; the team has one worker."""
    with embedded_place(work, **SETTINGS) as place:
        yield finished(fairness_case(place, jobs=JOBS), place)
    try:
        with redis_place(work, web=2, workers=1, **SETTINGS) as place:
            yield finished(fairness_case(place, jobs=JOBS), place)
    except Missing as missing:
        yield Case("fairness, PostgreSQL + Redis", faults=[str(missing)])


def finished(case: Case, place: Place) -> Case:
    """The case; the server is to stop with all that still waits."""
    case.check(wait_until(lambda: begun(place) > FIRST), "the jobs do not go on")
    return case
