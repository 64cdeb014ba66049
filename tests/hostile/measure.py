"""Sends hostile requests, and measures their effects on the server and on other clients."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import httpx

from tests.hostile.requests.client import Answer, Behaviour, Request, send
from tests.hostile.requests.corpus import HostileRequest
from tests.hostile.requests.stored_ids import StoredIds
from tests.live.server import LiveServer

from . import KIB, MIB, memory
from .watch import Observations, Observer

SETTLE_SECONDS = 5.0
FAILED = (500, 502, 504)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Limits for the effects of a request."""

    stall: float = 0.25
    """Seconds that `/healthz` may take."""
    slope: float = 2.5
    """Time at twice the size, divided by the time at the size."""
    noticeable: float = 0.25
    """Times below so many seconds have no slope."""
    memory: int = 100 * MIB
    """Bytes that may remain in use, besides twice the body."""
    timeout: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The effects of one request."""

    name: str
    size: int
    status: int
    seconds: float
    stall: float
    peak: int
    """Most bytes of memory that were used, above those before the request."""
    remaining: int
    """Bytes that remained in use, above those before the request."""
    slope: float = 0.0
    violations: tuple[str, ...] = ()
    text: str = field(default="", repr=False)
    """The beginning of the answer's body."""

    def __str__(self) -> str:
        size = f"{self.size / MIB:.1f} MB" if self.size >= MIB else f"{self.size / KIB:.0f} KB"
        slope = f", slope {self.slope:.1f}" if self.slope else ""
        return (
            f"{size}, {self.status or 'no answer'} after {self.seconds:.2f} s, stall {self.stall * 1000:.0f} ms, "
            f"peak +{self.peak / MIB:.0f} MB, remaining {self.remaining / MIB:+.0f} MB{slope}: {self.name}"
        )


class Attacker:
    """Sends hostile requests to one server, and measures their effects."""

    def __init__(
        self, server: LiveServer, observer: Observer, stored_ids: StoredIds, *, key: str, rules: Rules
    ) -> None:
        self.server, self.observer, self.stored_ids, self.key, self.rules = server, observer, stored_ids, key, rules
        self.port = server.port
        self.pids = memory.process_tree(self._pid)
        self.memory_at_start = memory.used(self.pids)
        self.memory_before: list[int] = []
        """Bytes used before each measurement."""
        self._is_suspect = False

    def run(self, hostile: HostileRequest, sizes: list[int], *, tries: int = 3) -> Iterator[Measurement]:
        """Measure a request at several sizes. A violation counts only if it happens ``tries`` times in a row."""
        before: Measurement | None = None
        for size in sizes:
            best = self._compare(self.once(hostile, size), before)
            for _ in range(tries - 1):
                if not best.violations:
                    break
                best = better(best, self._compare(self.once(hostile, size), before))
            yield best
            before = best
            if best.seconds >= self.rules.timeout:
                return

    def screen(self, group: Sequence[HostileRequest]) -> Iterator[Measurement]:
        """Send requests of several kinds concurrently, at twice their smallest size.

        If they violate a rule together, each is measured alone.
        """
        if self._is_suspect or any("_id}" in hostile.route for hostile in group):
            self._renew_ids()
        requests = [self._request(hostile, 2 * hostile.min_size) for hostile in group]
        used = self._record_memory()
        self.observer.collect()
        with ThreadPoolExecutor(len(group)) as pool:
            answers = list(pool.map(self._send, group, requests))
        observations = self.observer.collect()
        bodies = sum(len(request.body) * hostile.concurrent for hostile, request in zip(group, requests, strict=True))
        excess = memory.used(self.pids) - (used + self.rules.memory + 2 * bodies)
        for hostile, request, answer in zip(group, requests, answers, strict=True):
            violations = tuple(self._violations(hostile, answer, observations, excess))
            if violations or answer.seconds > self.rules.noticeable:
                self._is_suspect = True
                yield from self.run(hostile, [hostile.min_size, 2 * hostile.min_size])
                continue
            yield Measurement(
                name=hostile.name,
                size=len(request.body),
                status=answer.status,
                seconds=answer.seconds,
                stall=observations.stall,
                peak=0,
                remaining=0,
            )

    def once(self, hostile: HostileRequest, size: int) -> Measurement:
        """Measure a request of this size."""
        renewal_errors = self._renew_ids() if self._is_suspect or "_id}" in hostile.route else ()
        request = self._request(hostile, size)
        used = self._record_memory()
        memory.reset_peak(self.pids)
        self.observer.collect()
        answer = self._send(hostile, request)
        observations = self.observer.collect()
        peak = memory.peak(self.pids) - used
        allowed = used + self.rules.memory + 2 * len(request.body) * hostile.concurrent
        deadline = time.monotonic() + SETTLE_SECONDS
        while (after := memory.used(self.pids)) > allowed and time.monotonic() < deadline:
            time.sleep(0.1)
        later = self.observer.collect()
        observations = replace(
            observations, stall=max(observations.stall, later.stall), failures=[*observations.failures, *later.failures]
        )
        measurement = Measurement(
            name=hostile.name,
            size=size,
            status=answer.status,
            seconds=answer.seconds,
            stall=observations.stall,
            peak=peak,
            remaining=after - used,
            violations=(*renewal_errors, *self._violations(hostile, answer, observations, after - allowed)),
            text=answer.text.partition("\r\n\r\n")[2][:300],
        )
        self._is_suspect = bool(measurement.violations)
        return measurement

    def _record_memory(self) -> int:
        self.memory_before.append(memory.used(self.pids))
        return self.memory_before[-1]

    def growth(self) -> int:
        """Growth of the lowest memory use in bytes, from the second to the last third of all measurements."""
        third = len(self.memory_before) // 3
        return min(self.memory_before[-third:]) - min(self.memory_before[third:-third]) if third else 0

    def _request(self, hostile: HostileRequest, size: int) -> Request:
        request = hostile.make(size)
        keys = {"valid": self.key, "wrong": "wrong"}
        headers = {"Authorization": f"Bearer {keys[hostile.key]}"} if hostile.key else {}
        return replace(request, target=self.stored_ids.fill_in(request.target), headers={**headers, **request.headers})

    def _send(self, hostile: HostileRequest, request: Request) -> Answer:
        """The worst answer of the concurrent requests."""

        def send_one(_: int) -> Answer:
            return send(request, self.port, behaviour=hostile.behaviour, timeout=self.rules.timeout)

        if hostile.concurrent == 1:
            return send_one(0)
        with ThreadPoolExecutor(hostile.concurrent) as pool:
            answers = list(pool.map(send_one, range(hostile.concurrent)))
        return max(
            answers, key=lambda answer: (answer.is_late, answer.is_buffered, answer.status in FAILED, answer.seconds)
        )

    def _renew_ids(self) -> tuple[str, ...]:
        """Create new ids. If the server can't, the last request violated a rule, and the server is restarted."""
        try:
            self.stored_ids.renew()
        except httpx.HTTPError as error:
            self.server.kill()
            self.server.start()
            self.pids = memory.process_tree(self._pid)
            self.observer.collect()
            self.stored_ids.renew()
            return (f"the request before left the server unavailable: {error}"[:300],)
        return ()

    @property
    def _pid(self) -> int:
        assert self.server.process is not None
        return self.server.process.pid

    def _violations(
        self, hostile: HostileRequest, answer: Answer, observations: Observations, excess: int
    ) -> Iterator[str]:
        if observations.stall > self.rules.stall:
            yield f"/healthz waited {observations.stall:.2f} s"
        if excess > 0:
            yield f"{excess / MIB:.0f} MB more than allowed remained in use"
        if answer.is_late:
            yield f"took more than {self.rules.timeout:.0f} s"
        elif answer.status in FAILED:
            yield f"status {answer.status}"
        elif answer.is_buffered:
            yield "the answer is buffered for a client that doesn't read"
        elif not answer.status and hostile.behaviour is Behaviour.COMPLETE:
            yield "no answer"
        yield from (f"a victim: {failure}" for failure in observations.failures)

    def _compare(self, measurement: Measurement, before: Measurement | None) -> Measurement:
        if before is None:
            return measurement
        ratio = measurement.seconds / max(before.seconds, 1e-9)
        violations = measurement.violations
        if measurement.seconds > self.rules.noticeable and ratio > self.rules.slope:
            violations = (*violations, f"takes {ratio:.1f} times as long at twice the size")
        return replace(measurement, slope=ratio, violations=violations)


def better(first: Measurement, second: Measurement) -> Measurement:
    """The better of two measurements, with the failures of victims in both."""
    best, rest = (first, second) if rank(first) <= rank(second) else (second, first)
    failures = tuple(violation for violation in rest.violations if violation.startswith("a victim"))
    return replace(best, violations=(*best.violations, *failures))


def rank(measurement: Measurement) -> tuple[int, float, float]:
    return (len(measurement.violations), measurement.stall, measurement.seconds)
