"""Workers are killed at random, or told to stop in turn, while jobs run and clients read: all is finished and whole."""

import asyncio
import random
import re
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

from .cases import Case
from .places import PLACES, Missing, Place, kill
from .readers import Clients, follow_all, report
from .work import some_work

Trouble = Callable[[asyncio.Event], Coroutine[Any, Any, int]]
"""What goes on until its event says that all is over; how often it happened."""
LIMIT_SECONDS = 600.0
START_SECONDS = 60.0


async def kill_at_random(place: Place, chance: random.Random, over: asyncio.Event, seconds: tuple[float, float]) -> int:
    """Kill a worker every so often, until all is over; how many were."""
    killed = 0
    while not await happens(over, chance.uniform(*seconds)):
        if place.is_embedded:
            await asyncio.to_thread(place.server.kill)
            await asyncio.to_thread(place.server.start)
        elif workers := place.processes("worker"):
            kill(chance.choice(workers))
        else:
            continue
        killed += 1
    return killed


async def happens(event: asyncio.Event, seconds: float) -> bool:
    """Whether it happens within so many seconds."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True


async def stop_in_turn(place: Place, over: asyncio.Event, rounds: int) -> int:
    """Tell each process to stop and wait for the next one in its place; how many were stopped."""
    stopped = 0
    if place.is_embedded:
        while stopped < rounds * 2 and not await happens(over, 3):
            await asyncio.to_thread(place.server.stop)
            await asyncio.to_thread(place.server.start)
            stopped += 1
        return stopped
    for _ in range(rounds):
        for kind in ("worker", "web"):
            before = place.processes(kind)
            for pid in before:
                if await happens(over, 0.5):
                    return stopped
                kill(pid, signal.SIGTERM)
                stopped += 1
                await asyncio.to_thread(wait_for_successor, place, kind, pid, len(before))
    return stopped


def wait_for_successor(place: Place, kind: str, pid: int, count: int) -> None:
    """Until a process has gone, another has its place, and all web processes and workers are ready."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        running = place.processes(kind)
        ready = all(place.server._is_ready(url) for url in place.server.urls)
        if pid not in running and len(running) == count and ready:
            return
        time.sleep(0.2)
    raise AssertionError(f"no {kind} process took the place of one that was told to stop")


def check_rows(case: Case, place: Place, jobs: int, *, unknown: int) -> None:
    """In the database all jobs are over, also those whose creation was never answered."""
    counts = dict(place.rows("SELECT status, COUNT(*) FROM responses_api_response GROUP BY status"))
    case.check(set(counts) == {"completed"}, f"the rows stand so: {counts}")
    total = sum(counts.values())
    case.check(jobs <= total <= jobs + unknown, f"there are {total} rows for {jobs} jobs, {unknown} unanswered")
    losses = place.rows("SELECT MAX(attempt), MAX(losses), SUM(attempt) FROM responses_api_response")[0]
    case.figures.append(f"{losses[2]} claims, most of a job {losses[0]}")
    ((left,),) = place.rows("SELECT COUNT(*) FROM responses_api_checkpoint")
    case.check(left == 0, f"{left} checkpoints are left")


def check_log(case: Case, place: Place) -> None:
    """Nothing that was not foreseen is in the log."""
    lines = place.log_lines("Traceback", "[error")
    if lines:
        kinds = sorted({re.sub(r"\S*\d\S*", "…", line)[:160] for line in lines})
        case.faults.append(f"the log has {len(lines)} errors, such as {kinds[:3]}")


def race(
    name: str,
    place: Place,
    *,
    jobs: int,
    tokens: int,
    seed: int,
    trouble: Trouble,
    count: str,
    may_break: bool = False,
    spread: float = 0,
) -> Case:
    """Run jobs whose readers come and go while there is trouble: all must be finished, and each stream whole.

    ``count`` says what is counted of the trouble.
    """
    case = Case(f"{name}, {place.name}")
    chance = random.Random(seed)
    clients = Clients(server=place.server, chance=chance, may_break=may_break)
    works = [some_work(number, chance, tokens=tokens) for number in range(jobs)]
    times = 0

    async def meanwhile(over: asyncio.Event) -> None:
        nonlocal times
        times = await trouble(over)

    readings = asyncio.run(follow_all(clients, works, limit=LIMIT_SECONDS, meanwhile=meanwhile, spread_seconds=spread))
    report(case, clients, readings)
    case.figures.insert(1, f"{times} {count}")
    case.check(times > 0, "all was over before anything was tried")
    check_rows(case, place, jobs, unknown=clients.unknown)
    check_log(case, place)
    return case


def kill_case(place: Place, *, jobs: int, tokens: int, seconds: tuple[float, float], seed: int) -> Case:
    """Kill workers, or the whole server where it is one process."""
    chance = random.Random(seed)
    return race(
        "kill",
        place,
        jobs=jobs,
        tokens=tokens,
        seed=seed,
        trouble=lambda over: kill_at_random(place, chance, over, seconds),
        count="kills",
        may_break=place.is_embedded,
    )


def rolling_case(place: Place, *, jobs: int, tokens: int, rounds: int, seed: int) -> Case:
    """Tell every process in turn to stop, as a deployment does."""
    case = race(
        "rolling restart",
        place,
        jobs=jobs,
        tokens=tokens,
        seed=seed,
        trouble=lambda over: stop_in_turn(place, over, rounds),
        count="processes stopped",
        may_break=True,
        spread=5,
    )
    with place.server.http() as http:
        lost = http.get("/status").json()["background"]["recovered"]
    case.check(lost == 0, f"{lost} jobs were lost by their worker instead of handed over")
    wrong = [line for line in place.log_lines(" ended with status ") if " ended with status 0;" not in line]
    case.check(not wrong, f"processes did not end in order: {wrong[:3]}")
    return case


def run_kill(work: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """In all shapes: 3 workers in a team."""
    for name, opened in PLACES.items():
        size = {} if name == "embedded" else {"workers": 3}
        try:
            with opened(work, **size, RESPONSES_BATCH_SIZE="8") as place:
                yield kill_case(place, jobs=jobs, tokens=180, seconds=(2.5, 5), seed=seed)
        except Missing as missing:
            yield Case(f"kill, {name}", faults=[str(missing)])


def run_rolling(work: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """In both shapes."""
    for name in ("embedded", "redis"):
        size = {} if name == "embedded" else {"workers": 3}
        try:
            with PLACES[name](work, **size, RESPONSES_BATCH_SIZE="8") as place:
                yield rolling_case(place, jobs=jobs, tokens=180, rounds=2, seed=seed)
        except Missing as missing:
            yield Case(f"rolling restart, {name}", faults=[str(missing)])
