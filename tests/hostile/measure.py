"""What one hostile request does to the server and to others, and which rules that breaks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import httpx

from tests.hostile.requests.client import Answer, Manner, Request, send
from tests.hostile.requests.corpus import Hostile
from tests.hostile.requests.known import Known
from tests.live.server import LiveServer

from . import KIB, MIB, memory
from .watch import Seen, Watch

SETTLE_SECONDS = 5.0
FAILED = (500, 502, 504)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What others may notice."""

    stall: float = 0.25
    slope: float = 2.5
    """Time at twice the size, by time at the size."""
    noticeable: float = 0.25
    """Seconds below which a slope says nothing."""
    memory: int = 100 * MIB
    """Bytes that may stay, besides twice the body."""
    timeout: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One request's figures."""

    name: str
    size: int
    status: int
    seconds: float
    stall: float
    peak: int
    """Bytes of memory at most, above what was used before; and those that stayed."""
    left: int
    slope: float = 0.0
    faults: tuple[str, ...] = ()
    words: str = field(default="", repr=False)

    def __str__(self) -> str:
        size = f"{self.size / MIB:.1f} MB" if self.size >= MIB else f"{self.size / KIB:.0f} KB"
        slope = f", slope {self.slope:.1f}" if self.slope else ""
        return (
            f"{size}, {self.status or 'no answer'} after {self.seconds:.2f} s, stall {self.stall * 1000:.0f} ms, "
            f"peak +{self.peak / MIB:.0f} MB, left {self.left / MIB:+.0f} MB{slope}: {self.name}"
        )


class Bench:
    """Sends hostile requests to one server, one at a time."""

    def __init__(self, server: LiveServer, watch: Watch, known: Known, *, key: str, rules: Rules) -> None:
        self.server, self.watch, self.known, self.key, self.rules = server, watch, known, key, rules
        self.port = server.port
        self.pids = memory.family(self._pid)
        self.rest = memory.used(self.pids)
        """Bytes used at the start."""
        self.resting: list[int] = []
        """Bytes used before each measurement."""
        self._is_suspect = False

    def run(self, hostile: Hostile, sizes: list[int], *, tries: int = 3) -> Iterator[Measured]:
        """Its figures at sizes that double. What breaks a rule is tried again: only what breaks it each time counts."""
        before: Measured | None = None
        for size in sizes:
            best = self._judged(self.once(hostile, size), before)
            for _ in range(tries - 1):
                if not best.faults:
                    break
                best = better(best, self._judged(self.once(hostile, size), before))
            yield best
            before = best
            if best.seconds >= self.rules.timeout:
                return

    def screen(self, several: Sequence[Hostile]) -> Iterator[Measured]:
        """Requests of several kinds at once, at twice their smallest size.

        When something is noticed, each of them is measured alone, so that only what hurts by itself counts.
        """
        if self._is_suspect or any("_id}" in one.route for one in several):
            self._renewed()
        requests = [self._request(one, 2 * one.smallest) for one in several]
        used = self._rested()
        self.watch.take()
        with ThreadPoolExecutor(len(several)) as pool:
            answers = list(pool.map(self._sent, several, requests))
        seen = self.watch.take()
        bodies = sum(len(request.body) * one.at_once for one, request in zip(several, requests, strict=True))
        excess = memory.used(self.pids) - (used + self.rules.memory + 2 * bodies)
        for one, request, answer in zip(several, requests, answers, strict=True):
            faults = tuple(self._faults(one, answer, seen, excess))
            if faults or answer.seconds > self.rules.noticeable:
                self._is_suspect = True
                yield from self.run(one, [one.smallest, 2 * one.smallest])
                continue
            yield Measured(
                name=one.name,
                size=len(request.body),
                status=answer.status,
                seconds=answer.seconds,
                stall=seen.stall,
                peak=0,
                left=0,
            )

    def once(self, hostile: Hostile, size: int) -> Measured:
        """One request of this size."""
        lost = self._renewed() if self._is_suspect or "_id}" in hostile.route else ()
        request = self._request(hostile, size)
        used = self._rested()
        memory.forget_highest(self.pids)
        self.watch.take()
        answer = self._sent(hostile, request)
        seen = self.watch.take()
        peak = memory.highest(self.pids) - used
        allowed = used + self.rules.memory + 2 * len(request.body) * hostile.at_once
        deadline = time.monotonic() + SETTLE_SECONDS
        while (after := memory.used(self.pids)) > allowed and time.monotonic() < deadline:
            time.sleep(0.1)
        later = self.watch.take()
        seen = replace(seen, stall=max(seen.stall, later.stall), losses=[*seen.losses, *later.losses])
        measured = Measured(
            name=hostile.name,
            size=size,
            status=answer.status,
            seconds=answer.seconds,
            stall=seen.stall,
            peak=peak,
            left=after - used,
            faults=(*lost, *self._faults(hostile, answer, seen, after - allowed)),
            words=answer.text.partition("\r\n\r\n")[2][:300],
        )
        self._is_suspect = bool(measured.faults)
        return measured

    def _rested(self) -> int:
        self.resting.append(memory.used(self.pids))
        return self.resting[-1]

    def growth(self) -> int:
        """How many bytes the least that was used in the last third of all measurements is above that of the second."""
        third = len(self.resting) // 3
        return min(self.resting[-third:]) - min(self.resting[third:-third]) if third else 0

    def _request(self, hostile: Hostile, size: int) -> Request:
        request = hostile.make(size)
        keys = {"good": self.key, "wrong": "wrong"}
        headers = {"Authorization": f"Bearer {keys[hostile.key]}"} if hostile.key else {}
        return replace(request, target=self.known.placed(request.target), headers={**headers, **request.headers})

    def _sent(self, hostile: Hostile, request: Request) -> Answer:
        """The worst answer of all that are sent at once."""

        def one(_: int) -> Answer:
            return send(request, self.port, manner=hostile.manner, timeout=self.rules.timeout)

        if hostile.at_once == 1:
            return one(0)
        with ThreadPoolExecutor(hostile.at_once) as pool:
            answers = list(pool.map(one, range(hostile.at_once)))
        return max(
            answers, key=lambda answer: (answer.is_late, answer.is_held, answer.status in FAILED, answer.seconds)
        )

    def _renewed(self) -> tuple[str, ...]:
        """New ids to name. A server that can't give them is started anew: a fault of what came before."""
        try:
            self.known.renew()
        except httpx.HTTPError as error:
            self.server.kill()
            self.server.start()
            self.pids = memory.family(self._pid)
            self.watch.take()
            self.known.renew()
            return (f"the request before left a server that doesn't serve: {error}"[:300],)
        return ()

    @property
    def _pid(self) -> int:
        assert self.server.process is not None
        return self.server.process.pid

    def _faults(self, hostile: Hostile, answer: Answer, seen: Seen, excess: int) -> Iterator[str]:
        if seen.stall > self.rules.stall:
            yield f"/healthz waited {seen.stall:.2f} s"
        if excess > 0:
            yield f"{excess / MIB:.0f} MB more stayed than may"
        if answer.is_late:
            yield f"took more than {self.rules.timeout:.0f} s"
        elif answer.status in FAILED:
            yield f"answered {answer.status}"
        elif answer.is_held:
            yield "the answer is held for a client that doesn't read"
        elif not answer.status and hostile.manner is Manner.WHOLE:
            yield "no answer"
        yield from (f"a victim: {loss}" for loss in seen.losses)

    def _judged(self, measured: Measured, before: Measured | None) -> Measured:
        if before is None:
            return measured
        ratio = measured.seconds / max(before.seconds, 1e-9)
        faults = measured.faults
        if measured.seconds > self.rules.noticeable and ratio > self.rules.slope:
            faults = (*faults, f"takes {ratio:.1f} times as long at twice the size")
        return replace(measured, slope=ratio, faults=faults)


def better(one: Measured, other: Measured) -> Measured:
    """The better of two tries; a victim's loss is never forgotten."""
    best, rest = (one, other) if rank(one) <= rank(other) else (other, one)
    losses = tuple(fault for fault in rest.faults if fault.startswith("a victim"))
    return replace(best, faults=(*best.faults, *losses))


def rank(measured: Measured) -> tuple[int, float, float]:
    return (len(measured.faults), measured.stall, measured.seconds)
