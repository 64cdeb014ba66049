"""A job that no worker survives fails, and the readers of a dead worker get an error soon."""

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
from .deployments import Deployment, Missing, embedded_deployment, kill, redis_deployment
from .scripted_jobs import MODEL

NO_TOKEN = "[[wait: 600]]never"
LOST_ATTEMPTS = 3
"""After which a job fails."""
FOREGROUND_SECONDS = 10.0
STEP_SECONDS = 60.0
SETTLE_SECONDS = 1.0


def poison_case(deployment: Deployment) -> Case:
    """Kill the worker that runs the job before its first token, until the job fails."""
    case = Case(f"poison, {deployment.name}")
    client = deployment.server.client(web=deployment.server.web - 1)
    job = client.responses.create(model=MODEL, input=NO_TOKEN, background=True)
    started = time.monotonic()
    states: list[tuple[Any, ...]] = []
    for attempt in range(1, LOST_ATTEMPTS + 1):
        if not wait_until(lambda n=attempt: is_running(deployment, job.id, n)):  # type: ignore[misc]
            case.errors.append(
                f"after {attempt - 1} lost attempts it did not run again: {job_state(deployment, job.id)}"
            )
            return case
        # The status is from the previous attempt: let this one start its generation, from which on it counts.
        time.sleep(SETTLE_SECONDS)
        states.append(job_state(deployment, job.id))
        if deployment.is_embedded:
            deployment.server.kill()
            deployment.server.start()
        else:
            for pid in deployment.processes("worker"):
                kill(pid)
    if not wait_until(lambda: job_state(deployment, job.id)[0] not in ("queued", "in_progress")):
        case.errors.append(
            f"after {LOST_ATTEMPTS} lost attempts it is {job_state(deployment, job.id)}; before the kills: {states}"
        )
        return case
    client = deployment.server.client(web=deployment.server.web - 1)
    events = read_events(deployment, f"/responses/{job.id}?stream=true")
    case.figures += [f"{LOST_ATTEMPTS} lost attempts", f"ended after {time.monotonic() - started:.0f} s"]
    stored = client.responses.retrieve(job.id)
    code = stored.error.code if stored.error else None
    case.check((stored.status, code) == ("failed", "server_error"), f"it is {stored.status} with error {code}")
    case.check(events[-1]["type"] == "response.failed", f"the stream ends in {events[-1]['type']}")
    try:
        check_grammar(events)
    except AssertionError:
        case.errors.append(f"the stream is invalid: {[event['type'] for event in events]}")
    return case


def foreground_case(deployment: Deployment, signal_number: int = signal.SIGKILL) -> Case:
    """Kill or freeze the worker of a stream and of a waiting request: both get an error within ten seconds."""
    name = "dead" if signal_number == signal.SIGKILL else "frozen"
    case = Case(f"a {name} worker's readers, {deployment.name}")
    payload = {"model": MODEL, "input": "[[slow: 0.05]][[tokens: 100000]]"}
    web = deployment.server.web - 1
    with concurrent.futures.ThreadPoolExecutor(2) as pool, deployment.server.http(web=web) as http:
        waiting = pool.submit(http.post, "/responses", json=payload)
        streaming_since, events = concurrent.futures.Future[float](), list[dict[str, Any]]()

        def stream() -> float:
            for event in events_of(deployment, payload):
                events.append(event)
                if len(events) == 10:
                    streaming_since.set_result(time.monotonic())
            return time.monotonic()

        stream_end = pool.submit(stream)
        streaming_since.result(STEP_SECONDS)
        killed = time.monotonic()
        pids = deployment.processes("worker")
        for pid in pids:
            kill(pid, signal_number)
        answer = waiting.result(STEP_SECONDS)
        waited = time.monotonic() - killed
        streamed = stream_end.result(STEP_SECONDS) - killed
    case.figures += [f"the stream ended after {streamed:.1f} s", f"the request after {waited:.1f} s"]
    last = [event["type"] for event in events[-2:]]
    case.check(last == ["error", "response.failed"], f"the stream ends in {last}")
    try:
        check_grammar(events)
        check_items(events)
    except AssertionError as error:
        case.errors.append(f"the stream is invalid: {' '.join(str(error).split())[:200]}")
    case.check(answer.status_code in (500, 503), f"the request returned {answer.status_code}: {answer.text[:200]}")
    case.check(
        max(streamed, waited) < FOREGROUND_SECONDS, f"a reader waited for longer than {FOREGROUND_SECONDS:.0f} s"
    )
    if signal_number == signal.SIGSTOP:
        for pid in pids:
            kill(pid, signal.SIGCONT)
        time.sleep(SETTLE_SECONDS)
        rows = deployment.rows("SELECT status FROM responses_api_response")
        case.check(not rows, f"the worker stored responses that had failed for their readers: {rows}")
    return case


def events_of(deployment: Deployment, payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of a new foreground stream on the last web process."""
    with (
        deployment.server.http(web=deployment.server.web - 1) as http,
        http.stream("POST", "/responses", json={**payload, "stream": True}) as answer,
    ):
        yield from parse_events(answer)


def read_events(deployment: Deployment, path: str) -> list[dict[str, Any]]:
    """The events of a stream, to its end."""
    url = deployment.server.urls[-1] + path
    deadline = time.monotonic() + STEP_SECONDS
    events = []
    with httpx.stream("GET", url, headers=deployment.server.headers, timeout=STEP_SECONDS) as answer:
        for line in answer.iter_lines():  # comments keep a stream open that never ends
            if line.startswith("data: {"):
                events.append(orjson.loads(line.removeprefix("data: ")))
            assert time.monotonic() < deadline, f"the stream did not end: {[event['type'] for event in events]}"
    return events


def parse_events(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    """The events of an SSE stream."""
    for line in answer.iter_lines():
        if line.startswith("data: {"):
            yield orjson.loads(line.removeprefix("data: "))


def wait_until(condition: Callable[[], bool]) -> bool:
    """Whether the condition becomes true within a minute."""
    deadline = time.monotonic() + STEP_SECONDS
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def is_running(deployment: Deployment, response: str, attempt: int) -> bool:
    """Whether a worker runs a job for the n-th time. An attempt counts from the start of its generation."""
    status, worker, _, lost_attempts = job_state(deployment, response)
    return status == "in_progress" and worker != "" and lost_attempts == attempt


def job_state(deployment: Deployment, response: str) -> tuple[Any, ...]:
    """A job's status, worker, attempt and lost attempts."""
    (row,) = deployment.rows(
        f"SELECT status, worker, attempt, losses FROM responses_api_response WHERE public_id = '{response}'"
    )
    return row


def run_poison(directory: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """Both shapes; foreground readers outlive their worker only in a team."""
    with embedded_deployment(directory) as deployment:
        yield poison_case(deployment)
    try:
        with redis_deployment(directory, web=2, workers=1) as deployment:
            yield poison_case(deployment)
        with redis_deployment(directory, web=2, workers=1, RESPONSES_LEASE_SECONDS="6") as deployment:
            yield foreground_case(deployment)
    except Missing as missing:
        yield Case("poison, PostgreSQL + Redis", errors=[str(missing)])
