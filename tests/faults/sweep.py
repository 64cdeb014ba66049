"""Ten thousand responses expire at once beside a stream, a job and new requests, which must not be delayed."""

import asyncio
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from .cases import Case
from .deployments import DEPLOYMENTS, Deployment, Missing

ROWS = 10_000
SWEEP_LIMIT_SECONDS = 10
FILL_BATCH = 2500
LIMIT_SECONDS = 120
QUIET_SECONDS = 5
CREATE_EVERY_SECONDS = 0.1
MAX_SLOWDOWN = 3.0
"""Limit for the median of create requests during the sweep, which is SQLite's only writer half of the time."""
FILL = """
from django.db.models.functions import Now
from responses_api.models import Item, Project, Response, Turn, TurnItem
from responses_api.services.accounts.authenticate import default_project
project = default_project()
body = '{"id": "resp_x", "object": "response", "status": "completed"}'
for start in range(%(first)d, %(last)d, 500):
    turns = Turn.objects.bulk_create(Turn(project=project, depth=0, history_bytes=2000) for _ in range(500))
    items = Item.objects.bulk_create(
        Item(project=project, wire_id=f"msg_{start}_{n}", type="message", payload="x" * 1000) for n in range(1000)
    )
    TurnItem.objects.bulk_create(
        TurnItem(turn=turns[n // 2], item=item, position=n %% 2, is_output=n %% 2 == 1) for n, item in enumerate(items)
    )
    Response.objects.bulk_create(
        Response(public_id=f"resp_old_{start + n}", project=project, model="m", status="completed", turn=turns[n],
                 body=body, created_at=Now(), completed_at=Now(), used_at=Now())
        for n in range(500)
    )
"""
EXPIRE = """
from django.db.models.functions import Now
from responses_api.models import Response
Response.objects.filter(public_id__startswith="resp_old_").update(expires_at=Now())
"""


@dataclass(slots=True)
class Observations:
    """What clients observed in a period."""

    creates: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    fewest_workers: int = 99


def shell(deployment: Deployment, code: str) -> None:
    """Run code in a process beside the server."""
    deployment.server.manage("shell", "-v", "0", "-c", code)


def count_rows(deployment: Deployment) -> int:
    """The number of expired rows that still exist."""
    return int(deployment.rows("SELECT COUNT(*) FROM responses_api_response WHERE public_id LIKE 'resp_old_%'")[0][0])


def expire_all(deployment: Deployment) -> tuple[float, int]:
    """Let all rows expire. Returns the seconds until they are removed, and the number of those that were not."""
    shell(deployment, EXPIRE)
    began = time.monotonic()
    while (count := count_rows(deployment)) and time.monotonic() - began < LIMIT_SECONDS:
        time.sleep(0.1)
    return time.monotonic() - began, count


async def send_creates(
    deployment: Deployment, http: httpx.AsyncClient, observations: Observations, finished: asyncio.Event
) -> None:
    """Send new requests, one after the other, and count the workers."""
    while not finished.is_set():
        began = time.monotonic()
        answer = await http.post(f"{deployment.server.url}/responses", json={"input": "hello"})
        observations.creates.append(time.monotonic() - began)
        if answer.status_code != 200:
            observations.errors.append(f"a new request returned {answer.status_code}: {answer.text[:120]}")
        status = (await http.get(f"{deployment.server.url}/status")).json()
        observations.fewest_workers = min(observations.fewest_workers, len(status["workers"]))
        await asyncio.sleep(CREATE_EVERY_SECONDS)


async def read_stream(deployment: Deployment, http: httpx.AsyncClient, finished: asyncio.Event) -> str:
    """Read a stream until the event is set. Returns the type of the last event."""
    slow = {"input": "[[tokens: 3000]][[slow: 0.02]]", "stream": True}
    kind = ""
    async with http.stream("POST", f"{deployment.server.url}/responses", json=slow) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("event:"):
                kind = line.removeprefix("event:").strip()
            if finished.is_set():
                break
    return kind


async def sweep_beside(deployment: Deployment, case: Case, rows: int) -> None:
    """Let the rows expire, and measure."""
    async with httpx.AsyncClient(headers=deployment.server.headers, timeout=60) as http:
        job = (
            await http.post(
                f"{deployment.server.url}/responses",
                json={"input": "[[tokens: 3000]][[slow: 0.02]]", "background": True},
            )
        ).json()["id"]
        finished = asyncio.Event()
        stream = asyncio.create_task(read_stream(deployment, http, finished))
        quiet, busy, quiet_ended = Observations(), Observations(), asyncio.Event()
        creating = asyncio.create_task(send_creates(deployment, http, quiet, quiet_ended))
        await asyncio.sleep(QUIET_SECONDS)
        quiet_ended.set()
        await creating
        creating = asyncio.create_task(send_creates(deployment, http, busy, finished))
        seconds, count = await asyncio.to_thread(expire_all, deployment)
        finished.set()
        last = await stream
        await creating
        running = (await http.get(f"{deployment.server.url}/responses/{job}")).json()
    before, meanwhile = statistics.median(quiet.creates), statistics.median(busy.creates)
    case.figures += [
        f"{rows - count} of {rows} rows removed in {seconds:.1f} s",
        f"create requests took {before * 1000:.0f} ms before the sweep and {meanwhile * 1000:.0f} ms during it",
        f"at most {max(busy.creates) * 1000:.0f} ms",
    ]
    case.errors += busy.errors
    case.check(seconds <= SWEEP_LIMIT_SECONDS * rows / ROWS + 1, f"the sweep took {seconds:.1f} s")
    case.check(busy.fewest_workers > 0, "the status had no worker")
    case.check(last == "response.output_text.delta", f"the stream's last event was {last!r}")
    case.check(running["status"] == "in_progress", f"the job is {running['status']}")
    case.check(meanwhile <= before * MAX_SLOWDOWN, "create requests were much slower during the sweep")
    attempts = deployment.rows(f"SELECT attempt FROM responses_api_response WHERE public_id = '{job}'")
    case.check(attempts == [(1,)], f"the job was claimed again: {attempts}")


def sweep_case(deployment: Deployment, *, rows: int = ROWS) -> Case:
    """Fill the database, let the rows expire, and measure."""
    case = Case(f"{rows} expired responses, {deployment.name}")
    for first in range(0, rows, FILL_BATCH):
        shell(deployment, FILL % {"first": first, "last": min(rows, first + FILL_BATCH)})
    asyncio.run(sweep_beside(deployment, case, rows))
    return case


def run_sweep(directory: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """Both databases."""
    for shape in ("embedded", "redis"):
        size = {} if shape == "embedded" else {"web": 1, "workers": 2}
        try:
            with DEPLOYMENTS[shape](
                directory, **size, RESPONSES_SWEEP_SECONDS="1", RESPONSES_LEASE_SECONDS="2"
            ) as deployment:
                yield sweep_case(deployment)
        except Missing as missing:
            yield Case(f"expired responses, {shape}", errors=[str(missing)])
