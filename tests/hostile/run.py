"""A run: a server of its own, victims beside the hostile requests, and what is left of all when it is over."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from responses_api.services.processes.freed_memory import GROWTH_BYTES
from tests.hostile.requests.corpus import Hostile, corpus
from tests.hostile.requests.known import Known
from tests.hostile.requests.manners import ill_mannered
from tests.hostile.requests.repeated import repeated_requests
from tests.live.server import LiveServer, embedded, team

from . import MIB, memory
from .measure import Bench, Measured, Rules
from .watch import Watch

SETTINGS = {
    "RESPONSES_STORE_MAX_BYTES": "1GiB",
    "RESPONSES_CONVERSATION_STORE_MAX_BYTES": "1GiB",
    # As fast as a model; without a pace the script itself would be the load.
    "RESPONSES_SCRIPTED_TOKEN_SECONDS": "0.002",
}
DRIFT = 200 * MIB
"""Bytes that the whole run may leave in each process, with all that it has loaded since its start."""
GROWTH = GROWTH_BYTES
"""By which the memory of each process may grow between the second and the last third of the run: no process gives
memory back before it has grown by so much.
"""
REST_SECONDS = 2.0

Plan = Callable[[Bench, list[Hostile]], Iterator[Measured]]
"""Sends some of the requests."""


@dataclass(slots=True)
class Outcome:
    """What a run measured, and what was wrong besides."""

    measured: list[Measured] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    kinds: int = 0
    victims: int = 0
    """Streams and jobs beside them that came to their end whole."""

    @property
    def reached(self) -> int:
        return len({one.name for one in self.measured})

    @property
    def broken(self) -> list[Measured]:
        return [one for one in self.measured if one.faults]

    def note(self, one: Measured) -> None:
        self.measured.append(one)
        if one.faults:
            words = f" {one.words[:200]}" if one.status >= 500 else ""
            print(f"{one}\n    {'; '.join(one.faults)}{words}", flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Victims:
    """So many streams and jobs at a time, of so many tokens, each of which takes `slow` seconds."""

    count: int = 1
    tokens: int = 600
    slow: float = 0.1


def shape(name: str, *, database_url: str = "", redis_url: str = "") -> LiveServer:
    """A server of this shape in a directory of its own."""
    data_dir = Path(tempfile.mkdtemp(prefix=f"hostile-{name}-"))
    if name == "team":
        return team(data_dir, database_url=database_url, redis_url=redis_url, **SETTINGS)
    return embedded(data_dir, **SETTINGS)


def run(server: LiveServer, plan: Plan, *, rules: Rules | None = None, victims: Victims | None = None) -> Outcome:
    """Start the server, send what the plan says, wait for the victims, and stop it."""
    outcome, victims = Outcome(), victims or Victims()
    with contextlib.ExitStack() as stack:
        server.start()
        stack.callback(server.kill)
        key, victims_key = server.make_key("hostile"), server.make_key("victims")
        known = Known.on(server, key=key)
        stack.callback(known.http.close)
        document = httpx.get(f"{server.url}/openapi.json").raise_for_status().json()
        requests = [*repeated_requests(known), *ill_mannered(known), *corpus(document)]
        outcome.kinds = len(requests)
        watch = Watch(server.port, key=victims_key, tokens=victims.tokens, slow=victims.slow, count=victims.count)
        stack.callback(watch.kill)
        time.sleep(REST_SECONDS)
        at_rest = watch.take().stall
        print(f"{len(requests)} kinds of requests; at rest /healthz waits {at_rest * 1000:.0f} ms", flush=True)
        bench = Bench(server, watch, known, key=key, rules=rules or Rules())
        for one in plan(bench, requests):
            outcome.note(one)
        _finish(bench, outcome)
        try:
            if status := server.stop():
                outcome.faults.append(f"the server ended with {status}")
        except subprocess.TimeoutExpired:
            outcome.faults.append("the server did not end when it was told to")
    return outcome


def _finish(bench: Bench, outcome: Outcome) -> None:
    """What must hold when all is over."""
    seen = bench.watch.finish()
    outcome.victims = bench.watch.whole
    outcome.faults += [f"a victim: {loss}" for loss in seen.losses]
    status = bench.known.http.get("/status").raise_for_status().json()
    if status["background"]["recovered"]:
        outcome.faults.append(f"{status['background']['recovered']} leases were lost")
    drift = memory.used(bench.pids) - bench.rest
    growth = bench.growth()
    print(f"the run left {drift / MIB:.0f} MB in {len(bench.pids)} processes, growth {growth / MIB:.0f} MB", flush=True)
    if drift > DRIFT * len(bench.pids):
        outcome.faults.append(f"the run left {drift / MIB:.0f} MB")
    if growth > GROWTH * len(bench.pids):
        outcome.faults.append(f"memory grew by {growth / MIB:.0f} MB")
    log = bench.server.log.read_text(errors="replace")
    if "Traceback" in log:
        outcome.faults.append(f"the log has a traceback: {log[log.index('Traceback') :][:2000]}")
