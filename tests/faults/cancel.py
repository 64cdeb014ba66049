"""Jobs are cancelled at any time: when the call returns, they have ended, and their slot is free."""

import concurrent.futures
import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.streaming.streams import check_grammar, check_items

from .cases import Case
from .deployments import Deployment, Missing, embedded_deployment, redis_deployment
from .poison import parse_events, wait_until
from .scripted_jobs import MODEL, ScriptedJob, answer_errors, token_text

BATCH = 4
CONCURRENT_JOBS = 12
"""More than the batch, so that most long jobs wait."""
TOKEN_SECONDS = 0.01
FIRST_TOKEN_SECONDS = 1.0
"""Limit for the first token of an interactive request on an idle server."""


@dataclass(slots=True)
class CancelledJob:
    """The observations on one job that was cancelled."""

    status: str = ""
    status_before: str = ""
    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)


def cancel_job(deployment: Deployment, rng: random.Random) -> CancelledJob:
    """Create a job, read it, cancel it some time later, and check all that can be read of it."""
    job = CancelledJob()
    tokens = rng.choice((1, 5, 20, 60, 100_000))
    script = f"[[tokens: {tokens}]][[slow: {TOKEN_SECONDS}]]"
    urls = deployment.server.urls
    with httpx.Client(headers=deployment.server.headers, timeout=60) as http:
        created = http.post(f"{rng.choice(urls)}/responses", json={"model": MODEL, "input": script, "background": True})
        if created.status_code != 200:
            job.errors.append(f"creating it returned {created.status_code}: {created.text[:200]}")
            return job
        path = f"/responses/{created.json()['id']}"
        reader = threading.Thread(target=read_into, args=(deployment, rng.choice(urls) + path, job))
        if rng.random() < 0.5:
            reader.start()
        # About as long as the job takes, so that many are cancelled just when they end.
        time.sleep(rng.choice((0.0, rng.uniform(0, 0.5), min(tokens, 100) * TOKEN_SECONDS * rng.uniform(0.8, 1.4))))
        job.status_before = http.get(rng.choice(urls) + path).json()["status"]
        started = time.monotonic()
        answer = http.post(f"{rng.choice(urls)}{path}/cancel")
        job.seconds = time.monotonic() - started
        if answer.status_code != 200:
            job.errors.append(f"cancelling it returned {answer.status_code}: {answer.text[:200]}")
            return job
        cancelled = answer.json()
        job.status = cancelled["status"]
        check_row(deployment, path.rsplit("/", 1)[1], job)
        for url in urls:
            now = http.get(url + path).json()
            if now != cancelled:
                job.errors.append(
                    f"the cancel returned {cancelled['status']}, a later GET {now['status']} or other content"
                )
        if reader.ident is None:
            reader.start()
        reader.join()
        check_stream(job, cancelled)
        if job.status == "completed":
            job.errors += answer_errors(ScriptedJob(script, token_text(tokens)), cancelled)
    return job


def check_row(deployment: Deployment, response: str, job: CancelledJob) -> None:
    """In the database the job has ended, and no worker owns it."""
    if job.status not in ("cancelled", "completed"):
        job.errors.append(f"the cancel returned {job.status} after {job.seconds:.1f} s")
        return
    (row,) = deployment.rows(
        f"SELECT status, worker, lease_until IS NULL FROM responses_api_response WHERE public_id = '{response}'"
    )
    if (row[0], row[1], bool(row[2])) != (job.status, "", True):
        job.errors.append(f"the cancel returned {job.status}, but the row has {row}")


def read_into(deployment: Deployment, url: str, job: CancelledJob) -> None:
    """Read a job's stream to its end."""
    try:
        with httpx.stream(
            "GET", url, params={"stream": "true"}, headers=deployment.server.headers, timeout=60
        ) as answer:
            job.events += parse_events(answer)
    except httpx.HTTPError as error:
        job.errors.append(f"the stream broke: {error!r}")


def check_stream(job: CancelledJob, cancelled: dict[str, Any]) -> None:
    """The last event and the items of the stream match the object."""
    if not job.events:
        job.errors.append("its stream is empty")
        return
    try:
        check_grammar(job.events)
        check_items(job.events)
    except AssertionError as error:
        job.errors.append(f"the stream is invalid: {' '.join(str(error).split())[:200]}")
    last = job.events[-1]
    ends = {"cancelled": ("error", "response_cancelled"), "completed": ("response.completed", None)}
    if job.status in ends and (last["type"], last.get("code")) != ends[job.status]:
        job.errors.append(f"it is {job.status}, but its stream ends in {last['type']} {last.get('code')}")
    done = [event["item"] for event in job.events if event["type"] == "response.output_item.done"]
    if done != cancelled["output"]:
        job.errors.append("the stream has other items than the object")


def first_token_seconds(deployment: Deployment) -> float:
    """Time to the first token of an interactive request, which keeps its slot for two more seconds."""
    started = time.monotonic()
    payload = {"model": MODEL, "input": "[[tokens: 20]][[slow: 0.1]]", "stream": True}
    first = 0.0
    with deployment.server.http() as http, http.stream("POST", "/responses", json=payload, timeout=60) as answer:
        for event in parse_events(answer):
            if event["type"] == "response.output_text.delta":
                first = first or time.monotonic() - started
    return first


def occupancy(deployment: Deployment) -> tuple[int, int]:
    """The numbers of running and waiting requests in `/v1/status`."""
    with deployment.server.http() as http:
        status = http.get("/status").json()
    return status["running"], status["waiting"]


def cancel_case(deployment: Deployment, *, jobs: int, seed: int) -> Case:
    """Cancel many jobs concurrently; afterwards all slots must be free."""
    case = Case(f"cancel, {deployment.name}")
    with concurrent.futures.ThreadPoolExecutor(CONCURRENT_JOBS) as pool:
        cancelled = list(pool.map(lambda number: cancel_job(deployment, random.Random(seed + number)), range(jobs)))
    before = Counter(job.status_before for job in cancelled)
    after = Counter(job.status for job in cancelled)
    longest = max(job.seconds for job in cancelled)
    case.figures += [
        f"{jobs} cancels of jobs that were " + ", ".join(f"{name} {count}" for name, count in before.most_common()),
        "results: " + ", ".join(f"{name} {count}" for name, count in after.most_common()),
        f"in {statistics.median(job.seconds for job in cancelled) * 1000:.0f} ms, at most {longest:.2f} s",
    ]
    for job in cancelled:
        case.errors += job.errors
    # Requests on all slots at once: one of them would wait for a slot that is still taken.
    with concurrent.futures.ThreadPoolExecutor(BATCH) as pool:
        slowest = max(pool.map(first_token_seconds, [deployment] * BATCH))
    case.figures.append(f"afterwards a first token on every slot within {slowest * 1000:.0f} ms")
    case.check(slowest < FIRST_TOKEN_SECONDS, f"a slot was not free: {slowest:.1f} s to the first token")
    case.check(
        wait_until(lambda: occupancy(deployment) == (0, 0)),
        f"running and waiting requests stay at {occupancy(deployment)}",
    )
    active = deployment.rows("SELECT COUNT(*) FROM responses_api_response WHERE status IN ('queued', 'in_progress')")[
        0
    ][0]
    case.check(active == 0, f"{active} rows have not ended")
    return case


def run_cancel(directory: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """500 cancellations by default, in both shapes."""
    count = jobs * 5 // 2
    with embedded_deployment(directory, RESPONSES_BATCH_SIZE=str(BATCH)) as deployment:
        yield cancel_case(deployment, jobs=count, seed=seed)
    try:
        with redis_deployment(directory, workers=1, RESPONSES_BATCH_SIZE=str(BATCH)) as deployment:
            yield cancel_case(deployment, jobs=count, seed=seed)
    except Missing as missing:
        yield Case("cancel, PostgreSQL + Redis", errors=[str(missing)])
