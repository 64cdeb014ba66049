"""Wrong clocks, duplicate and lost messages, concurrent claims and frozen processes must do no harm."""

import asyncio
import json
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from celery import Celery

from responses_api.services.jobs.dispatch import JOB_TASK

from .cases import Case
from .deployments import DEPLOYMENTS, Deployment, Missing, kill, rabbitmq_deployment, redis_deployment, wrong_clocks
from .kill import disturbed_case, is_set_within, kill_at_random
from .poison import foreground_case

MAX_DEVIATION_SECONDS = 600
"""Limit for the deviation of a stored timestamp; the clocks are wrong by much more."""
MESSAGE_INTERVAL_SECONDS = 0.02
FROZEN_SECONDS = (3.5, 5.0)
"""How long a process is frozen: longer than its lease of two seconds, and until another process notices."""
OWNERS = """
    SELECT DISTINCT process.pid FROM responses_api_process process
    JOIN responses_api_response response ON response.worker = process.id
    WHERE response.status IN ('queued', 'in_progress') ORDER BY process.pid
"""
MAX_JOBS = 60
BATCH: dict[str, Any] = {"RESPONSES_BATCH_SIZE": "8"}


async def no_disturbance(finished: asyncio.Event) -> int:
    """Nothing but the deployment's settings."""
    await finished.wait()
    return 1


def clocks_case(deployment: Deployment, *, jobs: int, seed: int, tokens: int = 120) -> Case:
    """No process dies, so no job may be claimed twice."""
    case = disturbed_case(
        "clocks an hour off", deployment, jobs=jobs, tokens=tokens, seed=seed, disturb=no_disturbance, unit="run"
    )
    check_claimed_once(case, deployment)
    check_dates(case, deployment)
    return case


def clocks_and_kills_case(deployment: Deployment, *, jobs: int, seed: int) -> Case:
    """The same while workers are killed."""
    rng = random.Random(seed)

    async def disturb(finished: asyncio.Event) -> int:
        return await kill_at_random(deployment, rng, finished, (2.5, 5))

    name = "clocks an hour off, and kills"
    case = disturbed_case(name, deployment, jobs=jobs, tokens=180, seed=seed, disturb=disturb, unit="kills")
    check_dates(case, deployment)
    return case


def duplicate_messages_case(deployment: Deployment, *, jobs: int, seed: int) -> Case:
    """Workers are woken all the time, so that they claim concurrently."""
    environment = deployment.server.environment
    broker = Celery(broker=environment.get("RESPONSES_BROKER_URL") or environment["REDIS_URL"])

    async def repeat(finished: asyncio.Event) -> int:
        sent = 0
        while not await is_set_within(finished, MESSAGE_INTERVAL_SECONDS):
            await asyncio.to_thread(broker.send_task, JOB_TASK)
            sent += 1
        return sent

    name = "duplicate messages"
    case = disturbed_case(name, deployment, jobs=jobs, tokens=60, seed=seed, disturb=repeat, unit="extra messages")
    broker.close()
    check_claimed_once(case, deployment)
    return case


def lost_messages_case(deployment: Deployment, *, jobs: int, seed: int) -> Case:
    """No message arrives: workers find work without one."""
    case = disturbed_case(
        "lost messages", deployment, jobs=jobs, tokens=60, seed=seed, disturb=no_disturbance, unit="run"
    )
    check_claimed_once(case, deployment)
    return case


def frozen_case(deployment: Deployment, *, jobs: int, seed: int, tokens: int = 180) -> Case:
    """Processes are frozen for longer than their leases; when they wake, others may own their jobs."""
    rng = random.Random(seed)

    async def freeze(finished: asyncio.Event) -> int:
        times = 0
        while not await is_set_within(finished, rng.uniform(1, 3)):
            owners = [pid for (pid,) in deployment.rows(OWNERS)]
            if not owners:
                continue
            pid = rng.choice(owners)
            kill(pid, signal.SIGSTOP)
            await asyncio.sleep(rng.uniform(*FROZEN_SECONDS))
            kill(pid, signal.SIGCONT)
            times += 1
        return times

    case = disturbed_case(
        "frozen past the lease", deployment, jobs=jobs, tokens=tokens, seed=seed, disturb=freeze, unit="freezes"
    )
    lost = len(deployment.log_lines("job.lease_lost"))
    case.figures.append(f"{lost} leases lost by frozen processes")
    case.check(lost > 0 or deployment.is_embedded, "no worker had lost its lease when it woke")
    return case


def check_claimed_once(case: Case, deployment: Deployment) -> None:
    """No job was claimed twice."""
    ((twice,),) = deployment.rows("SELECT COUNT(*) FROM responses_api_response WHERE attempt <> 1")
    case.check(twice == 0, f"{twice} jobs were claimed more than once")
    lost = len(deployment.log_lines("job.lease_lost"))
    case.check(lost == 0, f"workers lost {lost} leases")


def check_dates(case: Case, deployment: Deployment) -> None:
    """All stored timestamps and durations come from the database's clock."""
    (dates,) = deployment.rows(
        "SELECT EXTRACT(EPOCH FROM MIN(created_at)), EXTRACT(EPOCH FROM MAX(created_at)),"
        " EXTRACT(EPOCH FROM MIN(completed_at)), EXTRACT(EPOCH FROM MAX(completed_at)) FROM responses_api_response"
    )
    ends = [json.loads(body)["completed_at"] for (body,) in deployment.rows("SELECT body FROM responses_api_response")]
    starts = deployment.rows("SELECT EXTRACT(EPOCH FROM started_at) FROM responses_api_process")
    deviation = max(
        abs(time.time() - float(timestamp)) for timestamp in (*dates, *ends, *(start for (start,) in starts))
    )
    case.check(deviation < MAX_DEVIATION_SECONDS, f"a stored timestamp is wrong by {deviation:.0f} s")
    ((longest,),) = deployment.rows("SELECT MAX(GREATEST(duration_ms, first_token_ms)) FROM responses_api_usagerecord")
    case.check(longest < MAX_DEVIATION_SECONDS * 1000, f"a stored duration is {longest / 1000:.0f} s")


def run_clocks(directory: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """The clocks of the web processes and of one worker are an hour fast, that of another an hour slow."""
    try:
        with redis_deployment(directory, workers=1, **wrong_clocks(), **BATCH) as deployment:
            yield clocks_case(deployment, jobs=min(jobs, MAX_JOBS), seed=seed)
        with redis_deployment(directory, workers=1, **wrong_clocks(), **BATCH) as deployment:
            yield clocks_and_kills_case(deployment, jobs=min(jobs, MAX_JOBS), seed=seed)
    except Missing as missing:
        yield Case("clocks an hour off", errors=[str(missing)])


def run_messages(directory: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """Duplicates, with both brokers; then none, since the workers listen to another broker."""
    for name in ("redis", "rabbitmq"):
        try:
            with DEPLOYMENTS[name](directory, workers=3, **BATCH) as deployment:
                yield duplicate_messages_case(deployment, jobs=jobs, seed=seed)
        except Missing as missing:
            yield Case(f"duplicate messages, {name}", errors=[str(missing)])
    try:
        with rabbitmq_deployment(
            directory, workers=0, extra_workers=[{"RESPONSES_BROKER_URL": ""}] * 2, **BATCH
        ) as deployment:
            yield lost_messages_case(deployment, jobs=min(jobs, MAX_JOBS), seed=seed)
    except Missing as missing:
        yield Case("lost messages", errors=[str(missing)])


def run_frozen(directory: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """All shapes; foreground readers outlive their worker only in a team."""
    for name, opened in DEPLOYMENTS.items():
        size = {} if name == "embedded" else {"workers": 3}
        try:
            with opened(directory, **size, **BATCH) as deployment:
                yield frozen_case(deployment, jobs=min(jobs, MAX_JOBS), seed=seed)
        except Missing as missing:
            yield Case(f"frozen past the lease, {name}", errors=[str(missing)])
    try:
        with redis_deployment(directory, workers=1, RESPONSES_LEASE_SECONDS="6") as deployment:
            yield foreground_case(deployment, signal.SIGSTOP)
    except Missing as missing:
        yield Case("a frozen worker's readers", errors=[str(missing)])
