"""A job that no worker survives fails, and whoever reads from a worker that died is told soon."""

import concurrent.futures
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson

from tests.streaming.streams import check_grammar, check_items

from .cases import Case
from .places import Missing, Place, embedded_place, kill, redis_place
from .work import MODEL

NO_TOKEN = "[[wait: 600]]never"
LOSSES = 3
FOREGROUND_SECONDS = 10.0
STEP_SECONDS = 60.0
HELD_SECONDS = 1.0


def poison_case(place: Place) -> Case:
    """Kill whoever runs the job before it has a token, until the job fails."""
    case = Case(f"poison, {place.name}")
    client = place.server.client(web=place.server.web - 1)
    job = client.responses.create(model=MODEL, input=NO_TOKEN, background=True)
    started = time.monotonic()
    stood: list[tuple[Any, ...]] = []
    for attempt in range(1, LOSSES + 1):
        if not wait_until(lambda n=attempt: was_begun(place, job.id, n)):  # type: ignore[misc]
            case.faults.append(f"after {attempt - 1} losses it never ran again: {standing(place, job.id)}")
            return case
        # The status is that of the run before: give this one time to begin, for only then its loss counts.
        time.sleep(HELD_SECONDS)
        stood.append(standing(place, job.id))
        if place.is_embedded:
            place.server.kill()
            place.server.start()
        else:
            for pid in place.processes("worker"):
                kill(pid)
    if not wait_until(lambda: standing(place, job.id)[0] not in ("queued", "in_progress")):
        case.faults.append(f"after {LOSSES} losses it still runs: {standing(place, job.id)}; before the kills: {stood}")
        return case
    client = place.server.client(web=place.server.web - 1)
    events = read_events(place, f"/responses/{job.id}?stream=true")
    case.figures += [f"{LOSSES} workers lost", f"over after {time.monotonic() - started:.0f} s"]
    stored = client.responses.retrieve(job.id)
    code = stored.error.code if stored.error else None
    case.check((stored.status, code) == ("failed", "server_error"), f"it is {stored.status}, its error {code}")
    case.check(events[-1]["type"] == "response.failed", f"the stream ends in {events[-1]['type']}")
    try:
        check_grammar(events)
    except AssertionError:
        case.faults.append(f"the stream breaks the grammar: {[event['type'] for event in events]}")
    return case


def foreground_case(place: Place, number: int = signal.SIGKILL) -> Case:
    """Kill or freeze the worker under a stream and under a request that waits: both are told within ten seconds."""
    name = "dead" if number == signal.SIGKILL else "frozen"
    case = Case(f"a {name} worker's readers, {place.name}")
    ask = {"model": MODEL, "input": "[[slow: 0.05]][[tokens: 100000]]"}
    web = place.server.web - 1
    with concurrent.futures.ThreadPoolExecutor(2) as pool, place.server.http(web=web) as http:
        waiting = pool.submit(http.post, "/responses", json=ask)
        first, told = concurrent.futures.Future[float](), list[dict[str, Any]]()

        def stream() -> float:
            for event in events_of(place, ask):
                told.append(event)
                if len(told) == 10:
                    first.set_result(time.monotonic())
            return time.monotonic()

        streaming = pool.submit(stream)
        first.result(STEP_SECONDS)
        killed = time.monotonic()
        struck = place.processes("worker")
        for pid in struck:
            kill(pid, number)
        answer = waiting.result(STEP_SECONDS)
        waited = time.monotonic() - killed
        streamed = streaming.result(STEP_SECONDS) - killed
    case.figures += [f"the stream ended after {streamed:.1f} s", f"the request after {waited:.1f} s"]
    last = [event["type"] for event in told[-2:]]
    case.check(last == ["error", "response.failed"], f"the stream ends in {last}")
    try:
        check_grammar(told)
        check_items(told)
    except AssertionError as error:
        case.faults.append(f"the stream breaks the rules: {' '.join(str(error).split())[:200]}")
    case.check(answer.status_code in (500, 503), f"the request is answered {answer.status_code}: {answer.text[:200]}")
    case.check(max(streamed, waited) < FOREGROUND_SECONDS, f"a reader waited longer than {FOREGROUND_SECONDS:.0f} s")
    if number == signal.SIGSTOP:
        for pid in struck:
            kill(pid, signal.SIGCONT)
        time.sleep(HELD_SECONDS)
        rows = place.rows("SELECT status FROM responses_api_response")
        case.check(not rows, f"what woke up stored what its readers were told has failed: {rows}")
    return case


def events_of(place: Place, payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of a new foreground stream on the last web process."""
    with (
        place.server.http(web=place.server.web - 1) as http,
        http.stream("POST", "/responses", json={**payload, "stream": True}) as answer,
    ):
        yield from parsed(answer)


def read_events(place: Place, path: str) -> list[dict[str, Any]]:
    """The events of a stream, to its end."""
    url = place.server.urls[-1] + path
    deadline = time.monotonic() + STEP_SECONDS
    events = []
    with httpx.stream("GET", url, headers=place.server.headers, timeout=STEP_SECONDS) as answer:
        for line in answer.iter_lines():  # pings keep a stream that does not end open for ever
            if line.startswith("data: {"):
                events.append(orjson.loads(line.removeprefix("data: ")))
            assert time.monotonic() < deadline, f"the stream did not end: {[event['type'] for event in events]}"
    return events


def parsed(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    """The events of an SSE stream."""
    for line in answer.iter_lines():
        if line.startswith("data: {"):
            yield orjson.loads(line.removeprefix("data: "))


def wait_until(condition: Callable[[], bool]) -> bool:
    """Whether it holds within a minute."""
    deadline = time.monotonic() + STEP_SECONDS
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def was_begun(place: Place, response: str, times: int) -> bool:
    """Whether a job was begun so often, and is held: a claim that was lost before counts for nothing."""
    status, worker, _, begun = standing(place, response)
    return status == "in_progress" and worker != "" and begun == times


def standing(place: Place, response: str) -> tuple[Any, ...]:
    """A job's status, worker, attempt and losses."""
    (row,) = place.rows(
        f"SELECT status, worker, attempt, losses FROM responses_api_response WHERE public_id = '{response}'"
    )
    return row


def run_poison(work: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """In both shapes; foreground readers outlive their worker only in a team."""
    with embedded_place(work) as place:
        yield poison_case(place)
    try:
        with redis_place(work, web=2, workers=1) as place:
            yield poison_case(place)
        with redis_place(work, web=2, workers=1, RESPONSES_LEASE_SECONDS="6") as place:
            yield foreground_case(place)
    except Missing as missing:
        yield Case("poison, PostgreSQL + Redis", faults=[str(missing)])
