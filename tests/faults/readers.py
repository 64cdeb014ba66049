"""Clients of many concurrent jobs, which disconnect at random, resume their streams, and check the results."""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.live.server import LiveServer
from tests.streaming.streams import Events

from .cases import Case
from .scripted_jobs import ObservedJob, ScriptedJob, answer_errors, stream_errors

RETRY_SECONDS = 0.2
TEMPORARY_STATUSES = {502, 503}
"""After these a client tries again."""
ANSWER_SECONDS = 30.0


@dataclass(kw_only=True)
class Clients:
    """Clients that create jobs and read their streams, on any web process. ``may_break`` if web processes may die."""

    server: LiveServer
    rng: random.Random
    may_break: bool = False
    disconnecting: bool = True
    unknown: int = 0
    """Create requests without an answer: they may have been accepted."""
    statuses: Counter[int] = field(default_factory=Counter)
    """The answers other than 200."""

    def http(self) -> httpx.AsyncClient:
        """The HTTP client that all of them share."""
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=50)
        return httpx.AsyncClient(limits=limits, headers=self.server.headers, timeout=ANSWER_SECONDS)

    def url(self) -> str:
        """The URL of a random web process."""
        return self.rng.choice(self.server.urls)

    async def follow(self, http: httpx.AsyncClient, observed: ObservedJob, *, limit: float) -> None:
        """Create a job unless it exists, and read it to its end. Taking longer than ``limit`` seconds is an error."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(limit):
                while not observed.is_finished:
                    await self._advance(http, observed)
        except TimeoutError:
            observed.abandon(f"not finished after {limit:.0f} s and {len(observed.events)} events read")
        observed.seconds = time.monotonic() - started

    async def _advance(self, http: httpx.AsyncClient, observed: ObservedJob) -> None:
        try:
            if observed.id:
                await self._read(http, observed)
            elif self.rng.random() < 0.3:
                await self._create_and_read(http, observed)
            else:
                await self._create(http, observed)
        except httpx.HTTPError as error:
            if not self.may_break:
                observed.errors.append(f"the connection broke after {len(observed.events)} events: {error!r}")
            self.unknown += not observed.id
            observed.breaks += 1
            await asyncio.sleep(RETRY_SECONDS)

    async def _create(self, http: httpx.AsyncClient, observed: ObservedJob) -> None:
        answer = await http.post(f"{self.url()}/responses", json=observed.job.payload)
        if self._is_ok(observed, answer.status_code, answer.text):
            observed.id = answer.json()["id"]
        else:
            await asyncio.sleep(RETRY_SECONDS)

    async def _create_and_read(self, http: httpx.AsyncClient, observed: ObservedJob) -> None:
        payload = {**observed.job.payload, "stream": True}
        async with http.stream("POST", f"{self.url()}/responses", json=payload) as answer:
            await self._receive(observed, answer)

    async def _read(self, http: httpx.AsyncClient, observed: ObservedJob) -> None:
        position = {"starting_after": len(observed.events) - 1} if observed.events else {}
        url = f"{self.url()}/responses/{observed.id}"
        async with http.stream("GET", url, params={"stream": "true", **position}) as answer:
            await self._receive(observed, answer)

    async def _receive(self, observed: ObservedJob, answer: httpx.Response) -> None:
        if answer.status_code != 200:
            self._is_ok(observed, answer.status_code, (await answer.aread()).decode())
            await asyncio.sleep(RETRY_SECONDS)
            return
        disconnect_after = self.rng.randint(1, 80) if self.disconnecting and self.rng.random() < 0.7 else None
        received = 0
        async for event in events_of(answer):
            observed.add(event)
            observed.id = observed.id or event["response"]["id"]
            received += 1
            if received == disconnect_after and not observed.is_finished:
                observed.disconnects += 1
                break
        else:
            if not observed.is_finished:
                observed.breaks += 1
                if not self.may_break:
                    observed.errors.append(
                        f"the stream ended after {len(observed.events)} events without a terminal event"
                    )
                await asyncio.sleep(RETRY_SECONDS)
            return
        await asyncio.sleep(self.rng.uniform(0, 0.5))

    def _is_ok(self, observed: ObservedJob, status: int, text: str) -> bool:
        if status == 200:
            return True
        self.statuses[status] += 1
        observed.breaks += 1
        if status not in TEMPORARY_STATUSES or not self.may_break:
            observed.abandon(f"the request returned {status}: {text[:200]}")
        return False


async def events_of(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """The events of an SSE stream."""
    async for line in answer.aiter_lines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


async def check_endings(clients: Clients, http: httpx.AsyncClient, observed_jobs: list[ObservedJob]) -> None:
    """Compare the events of each job with its script, with the stored response, and with its stream read again."""
    for observed in observed_jobs:
        if observed.is_abandoned or not observed.id:
            continue
        url = f"{clients.url()}/responses/{observed.id}"
        stored = (await http.get(url)).json()
        async with http.stream("GET", url, params={"stream": "true"}) as answer:
            replayed: Events = [event async for event in events_of(answer)]
        observed.errors += answer_errors(observed.job, stored)
        observed.errors += stream_errors(observed.events, stored, replayed)


async def follow_all(
    clients: Clients,
    scripted_jobs: list[ScriptedJob],
    *,
    limit: float,
    meanwhile: Callable[[asyncio.Event], Any],
    spread_seconds: float = 0.0,
) -> list[ObservedJob]:
    """Create and read all jobs concurrently while ``meanwhile`` runs; its event is set when all have ended."""
    finished = asyncio.Event()
    observed_jobs = [ObservedJob(job) for job in scripted_jobs]
    async with clients.http() as http:

        async def follow(observed: ObservedJob) -> None:
            await asyncio.sleep(clients.rng.uniform(0, spread_seconds))
            await clients.follow(http, observed, limit=limit)

        disturbance = asyncio.create_task(meanwhile(finished))
        await asyncio.gather(*(follow(observed) for observed in observed_jobs))
        finished.set()
        await disturbance
        await check_endings(clients, http, observed_jobs)
    return observed_jobs


def report(case: Case, clients: Clients, observed_jobs: list[ObservedJob]) -> None:
    """Add the figures and errors of all jobs to a case."""
    case.figures += [
        f"{len(observed_jobs)} jobs",
        f"{sum(len(observed.events) for observed in observed_jobs):,} events",
        f"readers disconnected {sum(observed.disconnects for observed in observed_jobs)} times",
        f"{sum(observed.breaks for observed in observed_jobs)} streams and requests broke",
        f"longest job {max(observed.seconds for observed in observed_jobs):.0f} s",
    ]
    for observed in observed_jobs:
        case.errors += [f"{observed.id or 'a job that was never accepted'}: {error}" for error in observed.errors]
