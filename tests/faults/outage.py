"""Redis or PostgreSQL is away for a while: new work is answered 503, and what was accepted is finished."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from .cases import Case
from .kill import LIMIT_SECONDS, check_rows, happens
from .places import Missing, OwnPostgres, OwnRedis, Place, own_postgres, own_redis, started, team
from .readers import Clients, follow_all, report
from .work import MODEL, Reading, Work, counted, some_work

AWAY_SECONDS = 20.0
SLOWEST_ANSWER_SECONDS = 15.0
PROBE_EVERY_SECONDS = 0.5
SETTLE_SECONDS = 1.0
"""The first answers of an outage may still be those of what was sent before."""


@dataclass(slots=True)
class Probes:
    """Requests that were sent while the service was away."""

    answers: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    accepted: list[Reading] = field(default_factory=list)
    slowest: float = 0.0


async def probe(place: Place, probes: Probes, gone: asyncio.Event, number: int, http: httpx.AsyncClient) -> None:
    """Send new work of one of three kinds; while the service is away the answer is to be 503."""
    kind = ("background", "foreground", "stream")[number % 3]
    work = Work("[[tokens: 3]]", counted(3))
    payload: dict[str, Any] = {"model": MODEL, "input": work.input}
    payload |= {"background": {"background": True}, "foreground": {}, "stream": {"stream": True}}[kind]
    began = time.monotonic()
    try:
        answer = await http.post(f"{place.server.urls[number % place.server.web]}/responses", json=payload)
    except httpx.HTTPError as error:
        probes.faults.append(f"new {kind} work was not answered: {error!r} after {time.monotonic() - began:.1f} s")
        return
    took = time.monotonic() - began
    if gone.is_set():
        return  # the service was back when the answer came
    probes.slowest = max(probes.slowest, took)
    probes.answers[f"{kind} {answer.status_code}"] += 1
    if kind == "background" and answer.status_code == 200:
        probes.accepted.append(Reading(work, id=answer.json()["id"]))
    if answer.status_code != 503:
        probes.faults.append(f"new {kind} work is answered {answer.status_code} while away: {answer.text[:160]!r}")
    elif "retry-after" not in answer.headers:
        probes.faults.append(f"503 for {kind} work has no Retry-After")
    if took > SLOWEST_ANSWER_SECONDS:
        probes.faults.append(f"new {kind} work was answered only after {took:.1f} s")


async def be_away(
    place: Place, service: OwnRedis | OwnPostgres, probes: Probes, over: asyncio.Event, *, after: float, seconds: float
) -> None:
    """Stop the service for so many seconds, and send new work meanwhile."""
    assert not await happens(over, after), "all was over before the outage"
    await asyncio.to_thread(service.stop)
    back = asyncio.Event()
    end = time.monotonic() + seconds
    await asyncio.sleep(SETTLE_SECONDS)
    async with httpx.AsyncClient(headers=place.server.headers, timeout=60) as http:
        sent: list[asyncio.Task[None]] = []
        while time.monotonic() < end:
            sent.append(asyncio.create_task(probe(place, probes, back, len(sent), http)))
            await asyncio.sleep(PROBE_EVERY_SECONDS)
        back.set()
        await asyncio.to_thread(service.start)
        await asyncio.gather(*sent)


def outage_case(
    place: Place, service: OwnRedis | OwnPostgres, name: str, *, jobs: int, tokens: int, seconds: float, seed: int
) -> Case:
    """Jobs run and wait while the service is away."""
    case = Case(f"{name} away for {seconds:.0f} s")
    chance = random.Random(seed)
    clients = Clients(server=place.server, chance=chance, may_break=True, leaving=False)
    works = [some_work(number, chance, tokens=tokens) for number in range(jobs)]
    probes = Probes()

    async def meanwhile(over: asyncio.Event) -> None:
        await be_away(place, service, probes, over, after=4, seconds=seconds)

    readings = asyncio.run(follow_all(clients, works, limit=LIMIT_SECONDS, meanwhile=meanwhile))
    report(case, clients, readings)
    case.figures.append(
        "new work meanwhile: " + ", ".join(f"{answer}: {count}" for answer, count in sorted(probes.answers.items()))
    )
    case.figures.append(f"slowest answer {probes.slowest:.1f} s")
    case.faults += probes.faults
    began = time.monotonic()
    with httpx.Client(headers=place.server.headers, timeout=30) as http:
        for url in place.server.urls:
            answer = http.post(f"{url}/responses", json={"model": MODEL, "input": "back?"})
            case.check(answer.status_code == 200, f"afterwards new work is answered {answer.status_code}")
    case.figures.append(f"new work afterwards in {time.monotonic() - began:.1f} s")
    check_background_rows(case, place, jobs, clients, probes)
    return case


def check_background_rows(case: Case, place: Place, jobs: int, clients: Clients, probes: Probes) -> None:
    """No row is left that nobody was told of, but those whose answer broke."""
    place.server.manage(
        "shell",
        "-v",
        "0",
        "-c",
        "from responses_api.models import Response as R; R.objects.filter(background=False).delete()",
    )
    unsure = clients.unknown + sum(clients.statuses.values()) + sum(probes.answers.values())
    check_rows(case, place, jobs, unknown=unsure)


def run_outage(work: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """Each service in turn."""
    size = {"jobs": max(6, jobs // 5), "tokens": 500, "seconds": AWAY_SECONDS, "seed": seed}
    for name in ("Redis", "PostgreSQL"):
        try:
            with own_postgres() as postgres, own_redis() as redis:
                server = team(work, redis.url, postgres.url, web=2, workers=2, RESPONSES_BATCH_SIZE="8")
                with started(Place(name=name, server=server, database_url=postgres.url)) as place:
                    service = redis if name == "Redis" else postgres
                    yield outage_case(place, service, name, **size)  # type: ignore[arg-type]
        except Missing as missing:
            yield Case(f"{name} away", faults=[str(missing)])
