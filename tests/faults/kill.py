"""Workers are killed at random, or stopped in turn, while jobs run: all jobs end, with whole streams."""

import asyncio
import random
import re
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

from .cases import Case
from .deployments import DEPLOYMENTS, Deployment, Missing, kill
from .readers import Clients, follow_all, report
from .scripted_jobs import make_job

Disturbance = Callable[[asyncio.Event], Coroutine[Any, Any, int]]
"""Disturbs a deployment until its event is set. Returns how often it did."""
LIMIT_SECONDS = 600.0
START_SECONDS = 60.0


async def kill_at_random(
    deployment: Deployment, rng: random.Random, finished: asyncio.Event, seconds: tuple[float, float]
) -> int:
    """Kill workers at random intervals. Returns the number of kills."""
    killed = 0
    while not await is_set_within(finished, rng.uniform(*seconds)):
        if deployment.is_embedded:
            await asyncio.to_thread(deployment.server.kill)
            await asyncio.to_thread(deployment.server.start)
        elif workers := deployment.processes("worker"):
            kill(rng.choice(workers))
        else:
            continue
        killed += 1
    return killed


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    """Whether an event is set within so many seconds."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True


async def restart_in_turn(deployment: Deployment, finished: asyncio.Event, rounds: int) -> int:
    """Stop each process and wait for its replacement. Returns the number of stopped processes."""
    stopped = 0
    if deployment.is_embedded:
        while stopped < rounds * 2 and not await is_set_within(finished, 3):
            await asyncio.to_thread(deployment.server.stop)
            await asyncio.to_thread(deployment.server.start)
            stopped += 1
        return stopped
    for _ in range(rounds):
        for kind in ("worker", "web"):
            pids = deployment.processes(kind)
            for pid in pids:
                if await is_set_within(finished, 0.5):
                    return stopped
                kill(pid, signal.SIGTERM)
                stopped += 1
                await asyncio.to_thread(wait_for_replacement, deployment, kind, pid, len(pids))
    return stopped


def wait_for_replacement(deployment: Deployment, kind: str, pid: int, count: int) -> None:
    """Wait until a process has ended and been replaced, and the whole deployment is ready."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        running = deployment.processes(kind)
        ready = all(deployment.server._is_ready(url) for url in deployment.server.urls)
        if pid not in running and len(running) == count and ready:
            return
        time.sleep(0.2)
    raise AssertionError(f"a stopped {kind} process was not replaced")


def check_rows(case: Case, deployment: Deployment, jobs: int, *, unknown: int) -> None:
    """In the database all jobs have ended, including those whose creation was never answered."""
    counts = dict(deployment.rows("SELECT status, COUNT(*) FROM responses_api_response GROUP BY status"))
    case.check(set(counts) == {"completed"}, f"the rows have these statuses: {counts}")
    total = sum(counts.values())
    case.check(
        jobs <= total <= jobs + unknown, f"there are {total} rows for {jobs} jobs and {unknown} unanswered requests"
    )
    claims = deployment.rows("SELECT MAX(attempt), SUM(attempt) FROM responses_api_response")[0]
    case.figures.append(f"{claims[1]} claims, at most {claims[0]} per job")
    ((checkpoints,),) = deployment.rows("SELECT COUNT(*) FROM responses_api_checkpoint")
    case.check(checkpoints == 0, f"{checkpoints} checkpoints are left")


def check_log(case: Case, deployment: Deployment, *, expected: str) -> None:
    """The log has no unexpected errors."""
    lines = [line for line in deployment.log_lines("Traceback", "[error") if not (expected and expected in line)]
    if lines:
        kinds = sorted({re.sub(r"\S*\d\S*", "…", line)[:160] for line in lines})
        case.errors.append(f"the log has {len(lines)} errors, such as {kinds[:3]}")


def disturbed_case(
    name: str,
    deployment: Deployment,
    *,
    jobs: int,
    tokens: int,
    seed: int,
    disturb: Disturbance,
    unit: str,
    may_break: bool = False,
    spread: float = 0,
    expected: str = "",
) -> Case:
    """Disturb a deployment while jobs run and readers come and go: all jobs must end, with whole streams.

    ``unit`` names what the disturbance counts. The log may have errors that contain ``expected``.
    """
    case = Case(f"{name}, {deployment.name}")
    rng = random.Random(seed)
    clients = Clients(server=deployment.server, rng=rng, may_break=may_break)
    scripted_jobs = [make_job(number, rng, tokens=tokens) for number in range(jobs)]
    times = 0

    async def meanwhile(finished: asyncio.Event) -> None:
        nonlocal times
        times = await disturb(finished)

    observed_jobs = asyncio.run(
        follow_all(clients, scripted_jobs, limit=LIMIT_SECONDS, meanwhile=meanwhile, spread_seconds=spread)
    )
    report(case, clients, observed_jobs)
    case.figures.insert(1, f"{times} {unit}")
    case.check(times > 0, "all jobs ended before the first disturbance")
    check_rows(case, deployment, jobs, unknown=clients.unknown)
    check_log(case, deployment, expected=expected)
    return case


def kill_case(deployment: Deployment, *, jobs: int, tokens: int, seconds: tuple[float, float], seed: int) -> Case:
    """Kill workers; in the embedded shape, the whole server."""
    rng = random.Random(seed)
    return disturbed_case(
        "kill",
        deployment,
        jobs=jobs,
        tokens=tokens,
        seed=seed,
        disturb=lambda finished: kill_at_random(deployment, rng, finished, seconds),
        unit="kills",
        may_break=deployment.is_embedded,
    )


def rolling_case(deployment: Deployment, *, jobs: int, tokens: int, rounds: int, seed: int) -> Case:
    """Restart every process in turn, as for a new version."""
    case = disturbed_case(
        "rolling restart",
        deployment,
        jobs=jobs,
        tokens=tokens,
        seed=seed,
        disturb=lambda finished: restart_in_turn(deployment, finished, rounds),
        unit="stopped processes",
        may_break=True,
        spread=5,
    )
    with deployment.server.http() as http:
        lost = http.get("/status").json()["background"]["recovered"]
    case.check(lost == 0, f"{lost} jobs were recovered after their worker ended, instead of released by it")
    failed = [line for line in deployment.log_lines(" ended with status ") if " ended with status 0;" not in line]
    case.check(not failed, f"processes ended with an error: {failed[:3]}")
    return case


def run_kill(directory: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """All shapes; teams have 3 workers."""
    for name, opened in DEPLOYMENTS.items():
        size = {} if name == "embedded" else {"workers": 3}
        try:
            with opened(directory, **size, RESPONSES_BATCH_SIZE="8") as deployment:
                yield kill_case(deployment, jobs=jobs, tokens=180, seconds=(2.5, 5), seed=seed)
        except Missing as missing:
            yield Case(f"kill, {name}", errors=[str(missing)])


def run_rolling(directory: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """Both shapes."""
    for name in ("embedded", "redis"):
        size = {} if name == "embedded" else {"workers": 3}
        try:
            with DEPLOYMENTS[name](directory, **size, RESPONSES_BATCH_SIZE="8") as deployment:
                yield rolling_case(deployment, jobs=jobs, tokens=180, rounds=2, seed=seed)
        except Missing as missing:
            yield Case(f"rolling restart, {name}", errors=[str(missing)])
