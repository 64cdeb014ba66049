"""One project queues a thousand jobs: another project's requests and jobs are hardly delayed."""

import concurrent.futures
import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from .cases import Case
from .deployments import Deployment, Missing, embedded_deployment, redis_deployment
from .poison import parse_events, wait_until
from .scripted_jobs import MODEL

JOBS = 1000
SAMPLES = 25
MAX_SLOWDOWN = 1.5
MAX_JOBS_BEFORE = 16
"""Jobs of the first project that may start before the other project's job."""
TOKENS = 60
SETTINGS: dict[str, Any] = {
    "RESPONSES_SCRIPTED_TOKEN_SECONDS": "0.02",
    "RESPONSES_BATCH_SIZE": "8",
    "RESPONSES_LEASE_SECONDS": "6",
}


def first_token_seconds(http: httpx.Client) -> float:
    """Time to the first token of an interactive request, which is then abandoned."""
    started = time.perf_counter()
    payload = {"model": MODEL, "input": "[[tokens: 20]]", "stream": True}
    with http.stream("POST", "/responses", json=payload) as answer:
        for event in parse_events(answer):
            if event["type"] == "response.output_text.delta":
                return time.perf_counter() - started
    raise AssertionError("an interactive request received no token")


def median_first_token_seconds(deployment: Deployment, key: str, samples: int) -> float:
    """The median of several requests, one after the other."""
    times = []
    # One client per request, since leaving closes the connection; creating one takes longer than the request.
    clients = [deployment.server.http(key=key) for _ in range(samples)]
    for http in clients:
        with http:
            times.append(first_token_seconds(http))
        # A random pause: a fixed one would always end at the same point of the engine's step.
        time.sleep(random.uniform(0.2, 0.4))
    return statistics.median(times)


def queue_jobs(deployment: Deployment, key: str, count: int) -> None:
    """Queue jobs for a project, on all web processes."""
    with httpx.Client(headers={"authorization": f"Bearer {key}"}, timeout=60) as http:

        def create(number: int) -> None:
            url = deployment.server.urls[number % deployment.server.web]
            payload = {"model": MODEL, "input": f"[[tokens: {TOKENS}]]", "background": True}
            http.post(f"{url}/responses", json=payload).raise_for_status()

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(create, range(count)))


def fairness_case(deployment: Deployment, *, jobs: int) -> Case:
    """Measure before and after the jobs are queued, and count those that start before the other project's job."""
    case = Case(f"fairness, {deployment.name}")
    busy_key, other_key = deployment.server.make_key("busy"), deployment.server.make_key("other")
    median_first_token_seconds(deployment, other_key, 3)
    idle = median_first_token_seconds(deployment, other_key, SAMPLES)
    queue_jobs(deployment, busy_key, jobs)
    started = count_started(deployment)
    assert started < jobs - 100, "the jobs ended before anything was measured"
    busy = median_first_token_seconds(deployment, other_key, SAMPLES)
    case.figures += [
        f"{jobs} jobs queued",
        f"first token after {idle * 1000:.0f} ms when idle, then after {busy * 1000:.0f} ms",
        f"ratio {busy / idle:.2f}, limit {MAX_SLOWDOWN}",
    ]
    case.check(busy <= idle * MAX_SLOWDOWN, "the interactive request waits too long")
    jobs_before, seconds = count_started_before(deployment, other_key)
    case.figures.append(
        f"a job had its first token after {seconds:.2f} s, {jobs_before} others had started since it was queued"
    )
    case.check(jobs_before < MAX_JOBS_BEFORE, f"{jobs_before} jobs started before the other project's job")
    waiting = jobs - count_started(deployment)
    case.figures.append(f"{waiting} of the jobs still waited")
    case.check(waiting > 0, "all jobs had started before the measurement ended")
    return case


def count_started(deployment: Deployment) -> int:
    """The number of background jobs that a worker has ever claimed."""
    rows = deployment.rows("SELECT COUNT(*) FROM responses_api_response WHERE background AND attempt > 0")
    return int(rows[0][0])


def count_started_before(deployment: Deployment, key: str) -> tuple[int, float]:
    """The number of other jobs that start before a new job's first token, and the time to that token."""
    count = count_started(deployment)
    started = time.perf_counter()
    payload = {"model": MODEL, "input": f"[[tokens: {TOKENS}]]", "background": True, "stream": True}
    with deployment.server.http(key=key) as http, http.stream("POST", "/responses", json=payload) as answer:
        for event in parse_events(answer):
            if event["type"] == "response.output_text.delta":
                return count_started(deployment) - count - 1, time.perf_counter() - started
    raise AssertionError("the job received no token")


def run_fairness(directory: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """Both shapes; the team has one worker."""
    with embedded_deployment(directory, **SETTINGS) as deployment:
        yield check_progress(fairness_case(deployment, jobs=JOBS), deployment)
    try:
        with redis_deployment(directory, web=2, workers=1, **SETTINGS) as deployment:
            yield check_progress(fairness_case(deployment, jobs=JOBS), deployment)
    except Missing as missing:
        yield Case("fairness, PostgreSQL + Redis", errors=[str(missing)])


def check_progress(case: Case, deployment: Deployment) -> Case:
    """Check that the jobs make progress. The server is stopped while many still wait."""
    case.check(wait_until(lambda: count_started(deployment) > MAX_JOBS_BEFORE), "the jobs make no progress")
    return case
