"""Jobs are cancelled at every moment of their life: when the call says so, they are over, and their slot is free."""

import concurrent.futures
import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.streaming.streams import check_grammar, check_items

from .cases import Case
from .places import Missing, Place, embedded_place, redis_place
from .poison import parsed, wait_until
from .work import MODEL, answer_faults, counted
from .work import Work as JobWork

BATCH = 4
AT_ONCE = 12
"""Jobs at a time: most of those that run long wait."""
TOKEN_SECONDS = 0.01
FIRST_TOKEN_SECONDS = 1.0
"""Longest until an interactive request has its first token on a server where nothing runs."""


@dataclass(slots=True)
class Seen:
    """What was seen of one job that was cancelled."""

    status: str = ""
    before: str = ""
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)


def cancel_one(place: Place, chance: random.Random) -> Seen:
    """Create a job, read it, cancel it some time later, and look at all of it."""
    seen = Seen()
    tokens = chance.choice((1, 5, 20, 60, 100_000))
    script = f"[[tokens: {tokens}]][[slow: {TOKEN_SECONDS}]]"
    urls = place.server.urls
    with httpx.Client(headers=place.server.headers, timeout=60) as http:
        job = http.post(f"{chance.choice(urls)}/responses", json={"model": MODEL, "input": script, "background": True})
        if job.status_code != 200:
            seen.faults.append(f"creation is answered {job.status_code}: {job.text[:200]}")
            return seen
        path = f"/responses/{job.json()['id']}"
        reader = threading.Thread(target=read_into, args=(place, chance.choice(urls) + path, seen))
        if chance.random() < 0.5:
            reader.start()
        # About as long as it takes, so that many are cancelled just when they end.
        time.sleep(
            chance.choice((0.0, chance.uniform(0, 0.5), min(tokens, 100) * TOKEN_SECONDS * chance.uniform(0.8, 1.4)))
        )
        seen.before = http.get(chance.choice(urls) + path).json()["status"]
        started = time.monotonic()
        answer = http.post(f"{chance.choice(urls)}{path}/cancel")
        seen.seconds = time.monotonic() - started
        if answer.status_code != 200:
            seen.faults.append(f"cancel is answered {answer.status_code}: {answer.text[:200]}")
            return seen
        found = answer.json()
        seen.status = found["status"]
        check_row(place, path.rsplit("/", 1)[1], seen)
        for url in urls:
            now = http.get(url + path).json()
            if now != found:
                seen.faults.append(
                    f"cancel answered {found['status']}, and GET then {now['status']}, or else in content"
                )
        if reader.ident is None:
            reader.start()
        reader.join()
        check_stream(seen, found)
        if seen.status == "completed":
            seen.faults += answer_faults(JobWork(script, counted(tokens)), found)
    return seen


def check_row(place: Place, response: str, seen: Seen) -> None:
    """In the database it is over, and no worker has it."""
    if seen.status not in ("cancelled", "completed"):
        seen.faults.append(f"cancel answered {seen.status} after {seen.seconds:.1f} s")
        return
    (row,) = place.rows(
        f"SELECT status, worker, lease_until IS NULL FROM responses_api_response WHERE public_id = '{response}'"
    )
    if (row[0], row[1], bool(row[2])) != (seen.status, "", True):
        seen.faults.append(f"cancel answered {seen.status}, and the row says {row}")


def read_into(place: Place, url: str, seen: Seen) -> None:
    """Read a job's stream to its end."""
    try:
        with httpx.stream("GET", url, params={"stream": "true"}, headers=place.server.headers, timeout=60) as answer:
            seen.events += parsed(answer)
    except httpx.HTTPError as error:
        seen.faults.append(f"the stream broke: {error!r}")


def check_stream(seen: Seen, found: dict[str, Any]) -> None:
    """Its last event says what the object says."""
    if not seen.events:
        seen.faults.append("its stream is empty")
        return
    try:
        check_grammar(seen.events)
        check_items(seen.events)
    except AssertionError as error:
        seen.faults.append(f"the stream breaks its rules: {' '.join(str(error).split())[:200]}")
    last = seen.events[-1]
    ends = {"cancelled": ("error", "response_cancelled"), "completed": ("response.completed", None)}
    if seen.status in ends and (last["type"], last.get("code")) != ends[seen.status]:
        seen.faults.append(f"it is {seen.status}, and its stream ends in {last['type']} {last.get('code')}")
    done = [event["item"] for event in seen.events if event["type"] == "response.output_item.done"]
    if done != found["output"]:
        seen.faults.append("the items of the stream are not those of the object")


def first_token_seconds(place: Place) -> float:
    """How long an interactive request takes to its first token; it then holds its slot for two seconds."""
    started = time.monotonic()
    payload = {"model": MODEL, "input": "[[tokens: 20]][[slow: 0.1]]", "stream": True}
    first = 0.0
    with place.server.http() as http, http.stream("POST", "/responses", json=payload, timeout=60) as answer:
        for event in parsed(answer):
            if event["type"] == "response.output_text.delta":
                first = first or time.monotonic() - started
    return first


def occupancy(place: Place) -> tuple[int, int]:
    """What runs and what waits by `/v1/status`."""
    with place.server.http() as http:
        status = http.get("/status").json()
    return status["running"], status["waiting"]


def cancel_case(place: Place, *, jobs: int, seed: int) -> Case:
    """Cancel so many jobs, several at once; then the engine must be as empty as at the start."""
    case = Case(f"cancel, {place.name}")
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        seen = list(pool.map(lambda number: cancel_one(place, random.Random(seed + number)), range(jobs)))
    before = Counter(one.before for one in seen)
    after = Counter(one.status for one in seen)
    longest = max(one.seconds for one in seen)
    case.figures += [
        f"{jobs} cancels of jobs that were " + ", ".join(f"{name} {count}" for name, count in before.most_common()),
        "answered " + ", ".join(f"{name} {count}" for name, count in after.most_common()),
        f"in {statistics.median(one.seconds for one in seen) * 1000:.0f} ms, at most {longest:.2f} s",
    ]
    for one in seen:
        case.faults += one.faults
    # Filling all slots shows whether one is still taken: its time is that of a single request.
    with concurrent.futures.ThreadPoolExecutor(BATCH) as pool:
        slowest = max(pool.map(first_token_seconds, [place] * BATCH))
    case.figures.append(f"then a first token on every slot within {slowest * 1000:.0f} ms")
    case.check(slowest < FIRST_TOKEN_SECONDS, f"a slot was not free: {slowest:.1f} s to the first token")
    case.check(wait_until(lambda: occupancy(place) == (0, 0)), f"running and waiting stay at {occupancy(place)}")
    active = place.rows("SELECT COUNT(*) FROM responses_api_response WHERE status IN ('queued', 'in_progress')")[0][0]
    case.check(active == 0, f"{active} rows are not over")
    return case


def run_cancel(work: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """500 times by default, in both shapes."""
    count = jobs * 5 // 2
    with embedded_place(work, RESPONSES_BATCH_SIZE=str(BATCH)) as place:
        yield cancel_case(place, jobs=count, seed=seed)
    try:
        with redis_place(work, workers=1, RESPONSES_BATCH_SIZE=str(BATCH)) as place:
            yield cancel_case(place, jobs=count, seed=seed)
    except Missing as missing:
        yield Case("cancel, PostgreSQL + Redis", faults=[str(missing)])
