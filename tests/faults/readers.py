"""Clients of many jobs at once, who leave at random, take up streams where they were, and check all in the end."""

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
from .work import Reading, Work, answer_faults, stream_faults

AGAIN_SECONDS = 0.2
PASSING = {502, 503}
"""Statuses after which a client tries again."""
ANSWER_SECONDS = 30.0


@dataclass(kw_only=True)
class Clients:
    """They create jobs and read their streams, on any web process. ``may_break`` says whether web processes die."""

    server: LiveServer
    chance: random.Random
    may_break: bool = False
    leaving: bool = True
    unknown: int = 0
    """Creations whose answer never came: they may have been accepted."""
    statuses: Counter[int] = field(default_factory=Counter)
    """The answers other than 200."""

    def http(self) -> httpx.AsyncClient:
        """A client for all of them."""
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=50)
        return httpx.AsyncClient(limits=limits, headers=self.server.headers, timeout=ANSWER_SECONDS)

    def url(self) -> str:
        """Any web process."""
        return self.chance.choice(self.server.urls)

    async def follow(self, http: httpx.AsyncClient, reading: Reading, *, limit: float) -> None:
        """Create a job unless that was done, and read it to its end; what takes longer than ``limit`` is a fault."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(limit):
                while not reading.is_over:
                    await self._once(http, reading)
        except TimeoutError:
            reading.spoil(f"not over after {limit:.0f} s, with {len(reading.events)} events read")
        reading.seconds = time.monotonic() - started

    async def _once(self, http: httpx.AsyncClient, reading: Reading) -> None:
        try:
            if reading.id:
                await self._read(http, reading)
            elif self.chance.random() < 0.3:
                await self._create_and_read(http, reading)
            else:
                await self._create(http, reading)
        except httpx.HTTPError as error:
            if not self.may_break:
                reading.faults.append(f"the connection broke after {len(reading.events)} events: {error!r}")
            self.unknown += not reading.id
            reading.breaks += 1
            await asyncio.sleep(AGAIN_SECONDS)

    async def _create(self, http: httpx.AsyncClient, reading: Reading) -> None:
        answer = await http.post(f"{self.url()}/responses", json=reading.work.payload)
        if self._is_good(reading, answer.status_code, answer.text):
            reading.id = answer.json()["id"]
        else:
            await asyncio.sleep(AGAIN_SECONDS)

    async def _create_and_read(self, http: httpx.AsyncClient, reading: Reading) -> None:
        payload = {**reading.work.payload, "stream": True}
        async with http.stream("POST", f"{self.url()}/responses", json=payload) as answer:
            await self._take_all(reading, answer)

    async def _read(self, http: httpx.AsyncClient, reading: Reading) -> None:
        place = {"starting_after": len(reading.events) - 1} if reading.events else {}
        url = f"{self.url()}/responses/{reading.id}"
        async with http.stream("GET", url, params={"stream": "true", **place}) as answer:
            await self._take_all(reading, answer)

    async def _take_all(self, reading: Reading, answer: httpx.Response) -> None:
        if answer.status_code != 200:
            self._is_good(reading, answer.status_code, (await answer.aread()).decode())
            await asyncio.sleep(AGAIN_SECONDS)
            return
        leave_after = self.chance.randint(1, 80) if self.leaving and self.chance.random() < 0.7 else None
        taken = 0
        async for event in events_of(answer):
            reading.take(event)
            reading.id = reading.id or event["response"]["id"]
            taken += 1
            if taken == leave_after and not reading.is_over:
                reading.leaves += 1
                break
        else:
            if not reading.is_over:
                reading.breaks += 1
                if not self.may_break:
                    reading.faults.append(f"the stream ended after {len(reading.events)} events without a last one")
                await asyncio.sleep(AGAIN_SECONDS)
            return
        await asyncio.sleep(self.chance.uniform(0, 0.5))

    def _is_good(self, reading: Reading, status: int, text: str) -> bool:
        if status == 200:
            return True
        self.statuses[status] += 1
        reading.breaks += 1
        if status not in PASSING or not self.may_break:
            reading.spoil(f"answered {status}: {text[:200]}")
        return False


async def events_of(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """The events of an SSE stream."""
    async for line in answer.aiter_lines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


async def check_endings(clients: Clients, http: httpx.AsyncClient, readings: list[Reading]) -> None:
    """Compare what was read of each job with its script, with what is stored, and with its stream read again."""
    for reading in readings:
        if reading.is_spoilt or not reading.id:
            continue
        url = f"{clients.url()}/responses/{reading.id}"
        stored = (await http.get(url)).json()
        async with http.stream("GET", url, params={"stream": "true"}) as answer:
            replayed: Events = [event async for event in events_of(answer)]
        reading.faults += answer_faults(reading.work, stored)
        reading.faults += stream_faults(reading.events, stored, replayed)


async def follow_all(
    clients: Clients,
    works: list[Work],
    *,
    limit: float,
    meanwhile: Callable[[asyncio.Event], Any],
    spread_seconds: float = 0.0,
) -> list[Reading]:
    """Create and read all jobs at once while ``meanwhile`` is at work, until its event says that all are over."""
    over = asyncio.Event()
    readings = [Reading(work) for work in works]
    async with clients.http() as http:

        async def follow(reading: Reading) -> None:
            await asyncio.sleep(clients.chance.uniform(0, spread_seconds))
            await clients.follow(http, reading, limit=limit)

        trouble = asyncio.create_task(meanwhile(over))
        await asyncio.gather(*(follow(reading) for reading in readings))
        over.set()
        await trouble
        await check_endings(clients, http, readings)
    return readings


def report(case: Case, clients: Clients, readings: list[Reading]) -> None:
    """The figures and faults of all jobs."""
    case.figures += [
        f"{len(readings)} jobs",
        f"{sum(len(reading.events) for reading in readings):,} events",
        f"readers left {sum(reading.leaves for reading in readings)} times",
        f"{sum(reading.breaks for reading in readings)} streams and requests broke",
        f"longest job {max(reading.seconds for reading in readings):.0f} s",
    ]
    for reading in readings:
        case.faults += [f"{reading.id or 'a job that was never accepted'}: {fault}" for fault in reading.faults]
