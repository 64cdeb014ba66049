"""A whole run: every request small, then those that cost most at sizes that double."""

from __future__ import annotations

import contextlib
import random
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.live.server import LiveServer, embedded, team

from . import MIB, memory
from .corpus import Hostile, corpus
from .known import Known
from .measure import Bench, Measured, Rules
from .repeated import repeated_requests
from .watch import Watch

SETTINGS = {
    "RESPONSES_STORE_MAX_BYTES": "1GiB",
    "RESPONSES_CONVERSATION_STORE_MAX_BYTES": "1GiB",
    # As fast as a model; without a pace the script itself would be the load.
    "RESPONSES_SCRIPTED_TOKEN_SECONDS": "0.002",
}
FIRST_SHARE = 0.6
"""Of the time, for all requests at their two smallest sizes."""
FIRST_ROUTES = ("POST /v1/responses",)
DRIFT = 200 * MIB
"""Bytes that the whole run may leave."""


@dataclass(slots=True)
class Outcome:
    """What a run measured, and what was wrong besides."""

    measured: list[Measured] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    kinds: int = 0
    reached: int = 0


@contextlib.contextmanager
def running(server: LiveServer) -> Iterator[tuple[LiveServer, str, str]]:
    """The started server, with the hostile caller's key and the victims'."""
    server.start()
    try:
        yield server, server.make_key("hostile"), server.make_key("victims")
    finally:
        server.kill()


def shape(name: str, *, database_url: str = "", redis_url: str = "") -> LiveServer:
    """A server of this shape in a directory of its own."""
    data_dir = Path(tempfile.mkdtemp(prefix=f"hostile-{name}-"))
    if name == "team":
        return team(data_dir, database_url=database_url, redis_url=redis_url, **SETTINGS)
    return embedded(data_dir, **SETTINGS)


def all_requests(server: LiveServer, known: Known) -> list[Hostile]:
    """Of the served document, and those that name what is stored."""
    document = httpx.get(f"{server.url}/openapi.json").raise_for_status().json()
    return [*repeated_requests(known), *corpus(document)]


def ordered(requests: Iterable[Hostile], *, seed: int) -> list[Hostile]:
    """What is repeated, then the first routes, then the others, each in another order every time."""
    chance = random.Random(seed)

    def rank(one: Hostile) -> tuple[bool, bool, float]:
        return (one.place != "repeated" and one.about is not None, one.route not in FIRST_ROUTES, chance.random())

    return sorted(requests, key=rank)


def sizes(hostile: Hostile, *, most: int) -> list[int]:
    """Sizes that double, from the smallest on."""
    found = [hostile.smallest]
    while 2 * found[-1] <= min(hostile.largest, most):
        found.append(2 * found[-1])
    return found


def run(
    server: LiveServer,
    *,
    seconds: float,
    seed: int,
    words: Sequence[str] = (),
    most: int = 64 * MIB,
    rules: Rules | None = None,
    victims: tuple[int, float] = (600, 0.1),
) -> Outcome:
    """Send what the time allows. `words`: only requests whose name has one of them."""
    outcome = Outcome()
    tokens, slow = victims
    with running(server) as (_, hostile_key, victims_key):
        known = Known.on(server, key=hostile_key)
        requests = [
            one
            for one in ordered(all_requests(server, known), seed=seed)
            if not words or any(word in one.name for word in words)
        ]
        outcome.kinds = len(requests)
        watch = Watch(server.port, key=victims_key, tokens=tokens, slow=slow)
        time.sleep(2)
        idle = watch.take()
        print(f"{len(requests)} kinds of requests; at rest /healthz waits {idle.stall * 1000:.0f} ms", flush=True)
        bench = Bench(server, watch, known, key=hostile_key, rules=rules or Rules())
        deadline = time.monotonic() + seconds
        _small(bench, requests, outcome, until=deadline - seconds * (1 - FIRST_SHARE))
        _large(bench, requests, outcome, until=deadline, most=most)
        _finish(server, bench, watch, outcome)
    return outcome


def _small(bench: Bench, requests: Sequence[Hostile], outcome: Outcome, *, until: float) -> None:
    for one in requests:
        if time.monotonic() > until:
            return
        outcome.reached += 1
        _note(outcome, bench.run(one, [one.smallest, 2 * one.smallest]))


def _large(bench: Bench, requests: Sequence[Hostile], outcome: Outcome, *, until: float, most: int) -> None:
    """Those first that took longest, or most memory, for each byte."""
    cost: dict[str, float] = {}
    for measured in outcome.measured:
        cost[measured.name] = (measured.seconds + measured.stall + measured.peak / (100 * MIB)) / measured.size
    for one in sorted(requests, key=lambda one: -cost.get(one.name, 0)):
        if time.monotonic() > until:
            return
        if one.name in cost and (larger := sizes(one, most=most)[2:]):
            _note(outcome, bench.run(one, larger))


def _note(outcome: Outcome, measured: Iterable[Measured]) -> None:
    for one in measured:
        outcome.measured.append(one)
        if one.faults:
            print(f"{one}\n    {'; '.join(one.faults)} {one.words[:200] if one.status >= 500 else ''}", flush=True)


def _finish(server: LiveServer, bench: Bench, watch: Watch, outcome: Outcome) -> None:
    seen = watch.finish()
    outcome.faults += [f"a victim: {loss}" for loss in seen.losses]
    status = bench.known.http.get("/status").raise_for_status().json()
    if status["background"]["recovered"]:
        outcome.faults.append(f"{status['background']['recovered']} leases were lost")
    drift = memory.used(bench.pids) - bench.rest
    if drift > DRIFT:
        outcome.faults.append(f"the run left {drift / MIB:.0f} MB")
    log = server.log.read_text(errors="replace")
    if "Traceback" in log:
        outcome.faults.append(f"the log has a traceback: {log[log.index('Traceback') :][:2000]}")
