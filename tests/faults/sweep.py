"""Ten thousand responses whose time is over at once, beside a stream, a job and new requests: nobody may notice."""

import asyncio
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from .cases import Case
from .places import PLACES, Missing, Place

ROWS = 10_000
SWEPT_SECONDS = 10
FILLED_AT_ONCE = 2500
LIMIT_SECONDS = 120
FIRST_SECONDS = 5
CREATE_EVERY_SECONDS = 0.1
SLOWER = 3.0
"""By how much the median create may be slower meanwhile; half the time, the only writer of SQLite is the sweep."""
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
class Seen:
    """What others saw meanwhile."""

    creates: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    fewest_workers: int = 99


def shell(place: Place, code: str) -> None:
    """Run code beside the server."""
    place.server.manage("shell", "-v", "0", "-c", code)


def left(place: Place) -> int:
    """How many of the rows are still there."""
    return int(place.rows("SELECT COUNT(*) FROM responses_api_response WHERE public_id LIKE 'resp_old_%'")[0][0])


def expire_all(place: Place) -> tuple[float, int]:
    """End the time of all rows; how long it takes until they are gone, and how many are not."""
    shell(place, EXPIRE)
    began = time.monotonic()
    while (count := left(place)) and time.monotonic() - began < LIMIT_SECONDS:
        time.sleep(0.1)
    return time.monotonic() - began, count


async def create_on(place: Place, http: httpx.AsyncClient, seen: Seen, over: asyncio.Event) -> None:
    """New requests, one after the other, and a look at the workers."""
    while not over.is_set():
        began = time.monotonic()
        answer = await http.post(f"{place.server.url}/responses", json={"input": "hello"})
        seen.creates.append(time.monotonic() - began)
        if answer.status_code != 200:
            seen.faults.append(f"a new request is answered {answer.status_code}: {answer.text[:120]}")
        status = (await http.get(f"{place.server.url}/status")).json()
        seen.fewest_workers = min(seen.fewest_workers, len(status["workers"]))
        await asyncio.sleep(CREATE_EVERY_SECONDS)


async def read_stream(place: Place, http: httpx.AsyncClient, over: asyncio.Event) -> str:
    """A stream that runs until all is over; its last event's type."""
    slow = {"input": "[[tokens: 3000]][[slow: 0.02]]", "stream": True}
    kind = ""
    async with http.stream("POST", f"{place.server.url}/responses", json=slow) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("event:"):
                kind = line.removeprefix("event:").strip()
            if over.is_set():
                break
    return kind


async def sweep_beside(place: Place, case: Case, rows: int) -> None:
    """Let the rows expire, and watch."""
    async with httpx.AsyncClient(headers=place.server.headers, timeout=60) as http:
        job = (
            await http.post(
                f"{place.server.url}/responses",
                json={"input": "[[tokens: 3000]][[slow: 0.02]]", "background": True},
            )
        ).json()["id"]
        over = asyncio.Event()
        stream = asyncio.create_task(read_stream(place, http, over))
        quiet, busy, calm = Seen(), Seen(), asyncio.Event()
        creating = asyncio.create_task(create_on(place, http, quiet, calm))
        await asyncio.sleep(FIRST_SECONDS)
        calm.set()
        await creating
        creating = asyncio.create_task(create_on(place, http, busy, over))
        seconds, count = await asyncio.to_thread(expire_all, place)
        over.set()
        last = await stream
        await creating
        running = (await http.get(f"{place.server.url}/responses/{job}")).json()
    before, meanwhile = statistics.median(quiet.creates), statistics.median(busy.creates)
    case.figures += [
        f"{rows - count} of {rows} gone in {seconds:.1f} s",
        f"a create took {before * 1000:.0f} ms before and {meanwhile * 1000:.0f} ms meanwhile",
        f"at most {max(busy.creates) * 1000:.0f} ms",
    ]
    case.faults += busy.faults
    case.check(seconds <= SWEPT_SECONDS * rows / ROWS + 1, f"the sweep took {seconds:.1f} s")
    case.check(busy.fewest_workers > 0, "no worker was left in the status")
    case.check(last == "response.output_text.delta", f"the stream's last event was {last!r}")
    case.check(running["status"] == "in_progress", f"the job is {running['status']}")
    case.check(meanwhile <= before * SLOWER, "creates were much slower meanwhile")
    attempts = place.rows(f"SELECT attempt FROM responses_api_response WHERE public_id = '{job}'")
    case.check(attempts == [(1,)], f"the job was claimed again: {attempts}")


def sweep_case(place: Place, *, rows: int = ROWS) -> Case:
    """All of it."""
    case = Case(f"{rows} expired responses, {place.name}")
    for first in range(0, rows, FILLED_AT_ONCE):
        shell(place, FILL % {"first": first, "last": min(rows, first + FILLED_AT_ONCE)})
    asyncio.run(sweep_beside(place, case, rows))
    return case


def run_sweep(work: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """Both databases."""
    for shape in ("embedded", "redis"):
        size = {} if shape == "embedded" else {"web": 1, "workers": 2}
        try:
            with PLACES[shape](work, **size, RESPONSES_SWEEP_SECONDS="1", RESPONSES_LEASE_SECONDS="2") as place:
                yield sweep_case(place)
        except Missing as missing:
            yield Case(f"expired responses, {shape}", faults=[str(missing)])
