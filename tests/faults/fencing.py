"""What must not matter: whose clock is wrong, how often a message arrives, who claims at once, who was frozen."""

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
from .kill import happens, kill_at_random, race
from .places import PLACES, Missing, Place, kill, rabbit_place, redis_place, wrong_clocks
from .poison import foreground_case

DATED_SECONDS = 600
"""How far a stored time may be from the true one: much less than the clocks are wrong by."""
WAKE_SECONDS = 0.02
FROZEN_SECONDS = (3.5, 5.0)
"""How long a process is frozen: longer than a lease, which is two seconds here, and until somebody sees that."""
HOLDERS = """
    SELECT DISTINCT process.pid FROM responses_api_process process
    JOIN responses_api_response response ON response.worker = process.id
    WHERE response.status IN ('queued', 'in_progress') ORDER BY process.pid
"""
MAX_JOBS = 60
BATCH: dict[str, Any] = {"RESPONSES_BATCH_SIZE": "8"}


async def nothing(over: asyncio.Event) -> int:
    """No trouble but that of the place."""
    await over.wait()
    return 1


def clocks_case(place: Place, *, jobs: int, seed: int, tokens: int = 120) -> Case:
    """Nobody dies, so nobody may take another's job."""
    case = race("clocks an hour off", place, jobs=jobs, tokens=tokens, seed=seed, trouble=nothing, count="run")
    check_claimed_once(case, place)
    check_dates(case, place)
    return case


def clocks_and_kills_case(place: Place, *, jobs: int, seed: int) -> Case:
    """The same while workers die."""
    chance = random.Random(seed)

    async def trouble(over: asyncio.Event) -> int:
        return await kill_at_random(place, chance, over, (2.5, 5))

    name = "clocks an hour off, and kills"
    case = race(name, place, jobs=jobs, tokens=180, seed=seed, trouble=trouble, count="kills")
    check_dates(case, place)
    return case


def storm_case(place: Place, *, jobs: int, seed: int) -> Case:
    """Every message arrives many times, so that all workers claim at once, all the time."""
    environment = place.server.environment
    broker = Celery(broker=environment.get("RESPONSES_BROKER_URL") or environment["REDIS_URL"])

    async def repeat(over: asyncio.Event) -> int:
        sent = 0
        while not await happens(over, WAKE_SECONDS):
            await asyncio.to_thread(broker.send_task, JOB_TASK)
            sent += 1
        return sent

    name = "messages sent again and again"
    case = race(name, place, jobs=jobs, tokens=60, seed=seed, trouble=repeat, count="messages more")
    broker.close()
    check_claimed_once(case, place)
    return case


def silence_case(place: Place, *, jobs: int, seed: int) -> Case:
    """No message arrives: the workers look for work by themselves."""
    case = race("messages that never arrive", place, jobs=jobs, tokens=60, seed=seed, trouble=nothing, count="run")
    check_claimed_once(case, place)
    return case


def frozen_case(place: Place, *, jobs: int, seed: int, tokens: int = 180) -> Case:
    """Processes stand still for longer than their leases and then wake: what they held may be another's by then."""
    chance = random.Random(seed)

    async def freeze(over: asyncio.Event) -> int:
        times = 0
        while not await happens(over, chance.uniform(1, 3)):
            holders = [pid for (pid,) in place.rows(HOLDERS)]
            if not holders:
                continue
            pid = chance.choice(holders)
            kill(pid, signal.SIGSTOP)
            await asyncio.sleep(chance.uniform(*FROZEN_SECONDS))
            kill(pid, signal.SIGCONT)
            times += 1
        return times

    case = race("frozen past the lease", place, jobs=jobs, tokens=tokens, seed=seed, trouble=freeze, count="freezes")
    refused = len(place.log_lines("job.lease_lost"))
    case.figures.append(f"{refused} leases lost by who was frozen")
    case.check(refused > 0 or place.is_embedded, "no worker woke up to a lease that was lost")
    return case


def check_claimed_once(case: Case, place: Place) -> None:
    """Nobody took a job that another had."""
    ((twice,),) = place.rows("SELECT COUNT(*) FROM responses_api_response WHERE attempt <> 1")
    case.check(twice == 0, f"{twice} jobs were claimed more than once")
    lost = len(place.log_lines("job.lease_lost"))
    case.check(lost == 0, f"workers lost {lost} leases")


def check_dates(case: Case, place: Place) -> None:
    """What is stored is dated by the database's clock, and so are a response's end and how long it took."""
    (dates,) = place.rows(
        "SELECT EXTRACT(EPOCH FROM MIN(created_at)), EXTRACT(EPOCH FROM MAX(created_at)),"
        " EXTRACT(EPOCH FROM MIN(completed_at)), EXTRACT(EPOCH FROM MAX(completed_at)) FROM responses_api_response"
    )
    ends = [json.loads(body)["completed_at"] for (body,) in place.rows("SELECT body FROM responses_api_response")]
    starts = place.rows("SELECT EXTRACT(EPOCH FROM started_at) FROM responses_api_process")
    away = max(abs(time.time() - float(moment)) for moment in (*dates, *ends, *(moment for (moment,) in starts)))
    case.check(away < DATED_SECONDS, f"something is dated {away:.0f} s away from the true time")
    ((longest,),) = place.rows("SELECT MAX(GREATEST(duration_ms, first_token_ms)) FROM responses_api_usagerecord")
    case.check(longest < DATED_SECONDS * 1000, f"something took {longest / 1000:.0f} s")


def run_clocks(work: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """The web processes and one worker are an hour ahead, one worker an hour behind, one right."""
    try:
        with redis_place(work, workers=1, **wrong_clocks(), **BATCH) as place:
            yield clocks_case(place, jobs=min(jobs, MAX_JOBS), seed=seed)
        with redis_place(work, workers=1, **wrong_clocks(), **BATCH) as place:
            yield clocks_and_kills_case(place, jobs=min(jobs, MAX_JOBS), seed=seed)
    except Missing as missing:
        yield Case("clocks an hour off", faults=[str(missing)])


def run_messages(work: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """Too many of them, with both brokers, and none: workers that listen to another broker."""
    for name in ("redis", "rabbitmq"):
        try:
            with PLACES[name](work, workers=3, **BATCH) as place:
                yield storm_case(place, jobs=jobs, seed=seed)
        except Missing as missing:
            yield Case(f"messages sent again and again, {name}", faults=[str(missing)])
    try:
        with rabbit_place(work, workers=0, beside=[{"RESPONSES_BROKER_URL": ""}] * 2, **BATCH) as place:
            yield silence_case(place, jobs=min(jobs, MAX_JOBS), seed=seed)
    except Missing as missing:
        yield Case("messages that never arrive", faults=[str(missing)])


def run_frozen(work: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """In all shapes; foreground readers outlive their worker only in a team."""
    for name, opened in PLACES.items():
        size = {} if name == "embedded" else {"workers": 3}
        try:
            with opened(work, **size, **BATCH) as place:
                yield frozen_case(place, jobs=min(jobs, MAX_JOBS), seed=seed)
        except Missing as missing:
            yield Case(f"frozen past the lease, {name}", faults=[str(missing)])
    try:
        with redis_place(work, workers=1, RESPONSES_LEASE_SECONDS="6") as place:
            yield foreground_case(place, signal.SIGSTOP)
    except Missing as missing:
        yield Case("a frozen worker's readers", faults=[str(missing)])
