"""A run: a server, victims beside the hostile requests, and the checks at its end."""

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
from tests.hostile.requests.behaviours import misbehaving_clients
from tests.hostile.requests.corpus import HostileRequest, corpus
from tests.hostile.requests.repeated import repeated_requests
from tests.hostile.requests.stored_ids import StoredIds
from tests.live.server import LiveServer, embedded, team

from . import MIB, memory
from .measure import Attacker, Measurement, Rules
from .watch import Observer

SETTINGS = {
    "RESPONSES_STORE_MAX_BYTES": "1GiB",
    "RESPONSES_CONVERSATION_STORE_MAX_BYTES": "1GiB",
    # As fast as a model: an engine without a pace would be a load by itself.
    "RESPONSES_SCRIPTED_TOKEN_SECONDS": "0.002",
}
DRIFT = 200 * MIB
"""Bytes by which the memory of each process may grow in the whole run, including what it loads after its start."""
GROWTH = GROWTH_BYTES
"""Bytes by which the memory of each process may grow between the second and the last third of the run: a process gives
no memory back before it has grown by so much.
"""
IDLE_SECONDS = 2.0

Plan = Callable[[Attacker, list[HostileRequest]], Iterator[Measurement]]
"""Sends some of the requests, and yields the measurements."""


@dataclass(slots=True)
class Outcome:
    """The measurements of a run, and the errors found at its end."""

    measurements: list[Measurement] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    kinds: int = 0
    victims: int = 0
    """Streams and jobs of victims that were completed."""

    @property
    def sent_kinds(self) -> int:
        return len({measurement.name for measurement in self.measurements})

    @property
    def violations(self) -> list[Measurement]:
        """The measurements that violated a rule."""
        return [measurement for measurement in self.measurements if measurement.violations]

    def add(self, measurement: Measurement) -> None:
        """Add a measurement, and print its violations."""
        self.measurements.append(measurement)
        if measurement.violations:
            text = f" {measurement.text[:200]}" if measurement.status >= 500 else ""
            print(f"{measurement}\n    {'; '.join(measurement.violations)}{text}", flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Victims:
    """``count`` concurrent streams and jobs each, of ``tokens`` tokens, each of which takes ``slow`` seconds."""

    count: int = 1
    tokens: int = 600
    slow: float = 0.1


def make_server(shape: str, *, database_url: str = "", redis_url: str = "") -> LiveServer:
    """A server of this shape, with a new data directory."""
    data_dir = Path(tempfile.mkdtemp(prefix=f"hostile-{shape}-"))
    if shape == "team":
        return team(data_dir, database_url=database_url, redis_url=redis_url, web=2, workers=2, **SETTINGS)
    return embedded(data_dir, **SETTINGS)


def run(server: LiveServer, plan: Plan, *, rules: Rules | None = None, victims: Victims | None = None) -> Outcome:
    """Start the server, send the requests of the plan, wait for the victims, and stop the server."""
    outcome, victims = Outcome(), victims or Victims()
    with contextlib.ExitStack() as stack:
        server.start()
        stack.callback(server.kill)
        key, victims_key = server.make_key("hostile"), server.make_key("victims")
        stored_ids = StoredIds.on(server, key=key)
        stack.callback(stored_ids.http.close)
        document = httpx.get(f"{server.url}/openapi.json").raise_for_status().json()
        requests = [*repeated_requests(stored_ids), *misbehaving_clients(stored_ids), *corpus(document)]
        outcome.kinds = len(requests)
        observer = Observer(server.port, key=victims_key, tokens=victims.tokens, slow=victims.slow, count=victims.count)
        stack.callback(observer.kill)
        time.sleep(IDLE_SECONDS)
        idle_stall = observer.collect().stall
        print(
            f"{len(requests)} kinds of requests; on the idle server /healthz takes {idle_stall * 1000:.0f} ms",
            flush=True,
        )
        attacker = Attacker(server, observer, stored_ids, key=key, rules=rules or Rules())
        for measurement in plan(attacker, requests):
            outcome.add(measurement)
        _check_end(attacker, outcome)
        try:
            if status := server.stop():
                outcome.errors.append(f"the server ended with status {status}")
        except subprocess.TimeoutExpired:
            outcome.errors.append("the server did not stop")
    return outcome


def _check_end(attacker: Attacker, outcome: Outcome) -> None:
    """Wait for the victims, and check the server."""
    observations = attacker.observer.finish()
    outcome.victims = attacker.observer.completed
    outcome.errors += [f"a victim: {failure}" for failure in observations.failures]
    status = attacker.stored_ids.http.get("/status").raise_for_status().json()
    if status["background"]["recovered"]:
        outcome.errors.append(f"{status['background']['recovered']} leases were lost")
    drift = memory.used(attacker.pids) - attacker.memory_at_start
    growth = attacker.growth()
    count = len(attacker.pids)
    print(f"memory of {count} processes: {drift / MIB:+.0f} MB, at the end {growth / MIB:+.0f} MB", flush=True)
    if drift > DRIFT * count:
        outcome.errors.append(f"memory grew by {drift / MIB:.0f} MB")
    if growth > GROWTH * count:
        outcome.errors.append(f"memory grew by {growth / MIB:.0f} MB at the end")
    log = attacker.server.log.read_text(errors="replace")
    if "Traceback" in log:
        outcome.errors.append(f"the log has a traceback: {log[log.index('Traceback') :][:2000]}")
