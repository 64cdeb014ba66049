"""Redis or PostgreSQL is unavailable for a while: new requests get 503, and accepted jobs are finished."""

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
from .deployments import Deployment, Missing, OwnPostgres, OwnRedis, own_postgres, own_redis, started, stopped_team
from .kill import LIMIT_SECONDS, check_rows, is_set_within
from .readers import Clients, follow_all, report
from .scripted_jobs import MODEL, ObservedJob, ScriptedJob, make_job, token_text

OUTAGE_SECONDS = 20.0
SLOWEST_ANSWER_SECONDS = 15.0
PROBE_EVERY_SECONDS = 0.5
SETTLE_SECONDS = 1.0
"""At the beginning of an outage, answers may still be those of earlier requests."""


@dataclass(slots=True)
class Probes:
    """Requests that were sent while the service was unavailable."""

    answers: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    accepted: list[ObservedJob] = field(default_factory=list)
    slowest: float = 0.0


async def probe(
    deployment: Deployment, probes: Probes, restarting: asyncio.Event, number: int, http: httpx.AsyncClient
) -> None:
    """Send a request of one of three kinds; while the service is unavailable, the answer must be 503."""
    kind = ("background", "foreground", "stream")[number % 3]
    job = ScriptedJob("[[tokens: 3]]", token_text(3))
    payload: dict[str, Any] = {"model": MODEL, "input": job.input}
    payload |= {"background": {"background": True}, "foreground": {}, "stream": {"stream": True}}[kind]
    started_at = time.monotonic()
    try:
        answer = await http.post(f"{deployment.server.urls[number % deployment.server.web]}/responses", json=payload)
    except httpx.HTTPError as error:
        probes.errors.append(
            f"a new {kind} request got no answer: {error!r} after {time.monotonic() - started_at:.1f} s"
        )
        return
    took = time.monotonic() - started_at
    if restarting.is_set():
        return  # the service may have been available again
    probes.slowest = max(probes.slowest, took)
    probes.answers[f"{kind} {answer.status_code}"] += 1
    if kind == "background" and answer.status_code == 200:
        probes.accepted.append(ObservedJob(job, id=answer.json()["id"]))
    if answer.status_code != 503:
        probes.errors.append(
            f"a new {kind} request returned {answer.status_code} during the outage: {answer.text[:160]!r}"
        )
    elif "retry-after" not in answer.headers:
        probes.errors.append(f"the 503 for a {kind} request has no Retry-After")
    if took > SLOWEST_ANSWER_SECONDS:
        probes.errors.append(f"a new {kind} request was answered only after {took:.1f} s")


async def interrupt_service(
    deployment: Deployment,
    service: OwnRedis | OwnPostgres,
    probes: Probes,
    finished: asyncio.Event,
    *,
    after: float,
    seconds: float,
) -> None:
    """Stop the service for so many seconds, and send new requests meanwhile."""
    assert not await is_set_within(finished, after), "all jobs ended before the outage"
    await asyncio.to_thread(service.stop)
    restarting = asyncio.Event()
    end = time.monotonic() + seconds
    await asyncio.sleep(SETTLE_SECONDS)
    async with httpx.AsyncClient(headers=deployment.server.headers, timeout=60) as http:
        sent: list[asyncio.Task[None]] = []
        while time.monotonic() < end:
            sent.append(asyncio.create_task(probe(deployment, probes, restarting, len(sent), http)))
            await asyncio.sleep(PROBE_EVERY_SECONDS)
        restarting.set()
        await asyncio.to_thread(service.start)
        await asyncio.gather(*sent)


def outage_case(
    deployment: Deployment,
    service: OwnRedis | OwnPostgres,
    name: str,
    *,
    jobs: int,
    tokens: int,
    seconds: float,
    seed: int,
) -> Case:
    """Jobs run and wait while the service is unavailable."""
    case = Case(f"{name} unavailable for {seconds:.0f} s")
    rng = random.Random(seed)
    clients = Clients(server=deployment.server, rng=rng, may_break=True, disconnecting=False)
    scripted_jobs = [make_job(number, rng, tokens=tokens) for number in range(jobs)]
    probes = Probes()

    async def meanwhile(finished: asyncio.Event) -> None:
        await interrupt_service(deployment, service, probes, finished, after=4, seconds=seconds)

    observed_jobs = asyncio.run(follow_all(clients, scripted_jobs, limit=LIMIT_SECONDS, meanwhile=meanwhile))
    report(case, clients, observed_jobs)
    case.figures.append(
        "new requests meanwhile: " + ", ".join(f"{answer}: {count}" for answer, count in sorted(probes.answers.items()))
    )
    case.figures.append(f"slowest answer {probes.slowest:.1f} s")
    case.errors += probes.errors
    started_at = time.monotonic()
    with httpx.Client(headers=deployment.server.headers, timeout=30) as http:
        for url in deployment.server.urls:
            answer = http.post(f"{url}/responses", json={"model": MODEL, "input": "hello"})
            case.check(answer.status_code == 200, f"afterwards a new request returns {answer.status_code}")
    case.figures.append(f"new requests afterwards in {time.monotonic() - started_at:.1f} s")
    check_background_rows(case, deployment, jobs, clients, probes)
    return case


def check_background_rows(case: Case, deployment: Deployment, jobs: int, clients: Clients, probes: Probes) -> None:
    """No row is left whose id no client received, except for answers that broke."""
    deployment.server.manage(
        "shell",
        "-v",
        "0",
        "-c",
        "from responses_api.models import Response as R; R.objects.filter(background=False).delete()",
    )
    unknown = clients.unknown + sum(clients.statuses.values()) + sum(probes.answers.values())
    check_rows(case, deployment, jobs, unknown=unknown)


def run_outage(directory: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """Each service in turn."""
    size = {"jobs": max(6, jobs // 5), "tokens": 500, "seconds": OUTAGE_SECONDS, "seed": seed}
    for name in ("Redis", "PostgreSQL"):
        try:
            with own_postgres() as postgres, own_redis() as redis:
                server = stopped_team(directory, redis.url, postgres.url, web=2, workers=2, RESPONSES_BATCH_SIZE="8")
                with started(Deployment(name=name, server=server, database_url=postgres.url)) as deployment:
                    service = redis if name == "Redis" else postgres
                    yield outage_case(deployment, service, name, **size)  # type: ignore[arg-type]
        except Missing as missing:
            yield Case(f"{name} unavailable", errors=[str(missing)])
