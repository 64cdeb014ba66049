"""Plans: the hostile requests to send, with their order and sizes."""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Iterable, Iterator, Sequence

from tests.hostile.requests.client import Behaviour
from tests.hostile.requests.corpus import HostileRequest

from . import KIB, MIB
from .measure import Attacker, Measurement
from .run import Plan

FIRST_SHARE = 0.6
"""Share of the time for all requests at their two smallest sizes."""
FIRST_ROUTES = ("POST /v1/responses",)
TRIES = 3
CONCURRENT_KINDS = 8


def everything(*, seconds: float, seed: int, words: Sequence[str] = (), max_size: int = 64 * MIB) -> Plan:
    """Every request at its smallest sizes, then the most expensive ones at larger sizes, as long as there is time.

    ``words`` selects the requests whose names contain one of them.
    """

    def plan(attacker: Attacker, requests: list[HostileRequest]) -> Iterator[Measurement]:
        selected = ordered(requests, seed=seed, words=words)
        deadline = time.monotonic() + seconds
        small: list[Measurement] = []
        for hostile in selected:
            if time.monotonic() > deadline - seconds * (1 - FIRST_SHARE):
                break
            for measurement in attacker.run(hostile, sizes(hostile, max_size=2 * hostile.min_size), tries=TRIES):
                small.append(measurement)
                yield measurement
        for hostile in by_cost(selected, small):
            if time.monotonic() > deadline:
                return
            if larger := sizes(hostile, max_size=max_size)[2:]:
                yield from attacker.run(hostile, larger, tries=TRIES)

    return plan


def every_kind(*, seed: int, words: Sequence[str] = (), concurrent: int = CONCURRENT_KINDS) -> Plan:
    """Every request once, without a time limit. ``concurrent`` kinds are sent together, if they are single requests."""

    def plan(attacker: Attacker, requests: list[HostileRequest]) -> Iterator[Measurement]:
        selected = ordered(requests, seed=seed, words=words)
        grouped = [
            hostile for hostile in selected if hostile.concurrent == 1 and hostile.behaviour is Behaviour.COMPLETE
        ]
        for hostile in selected:
            if hostile.concurrent > 1 or hostile.behaviour is not Behaviour.COMPLETE:
                yield from attacker.run(hostile, sizes(hostile, max_size=2 * hostile.min_size), tries=TRIES)
        began = time.monotonic()
        for start in range(0, len(grouped), concurrent):
            yield from attacker.screen(grouped[start : start + concurrent])
            if start % 2000 < concurrent:
                print(f"{start} of {len(grouped)} kinds after {time.monotonic() - began:.0f} s", flush=True)

    return plan


def in_sequence(*plans: Plan) -> Plan:
    """These plans, one after the other."""

    def plan(attacker: Attacker, requests: list[HostileRequest]) -> Iterator[Measurement]:
        for part in plans:
            yield from part(attacker, requests)

    return plan


def only(names: Collection[str]) -> Plan:
    """These requests at twice their smallest size, once each."""

    def plan(attacker: Attacker, requests: list[HostileRequest]) -> Iterator[Measurement]:
        by_name = {hostile.name: hostile for hostile in requests}
        for name in names:
            hostile = by_name[name]
            yield from attacker.run(hostile, [2 * hostile.min_size], tries=1)

    return plan


def at_random(*, seconds: float, seed: int, max_size: int = 4 * MIB) -> Plan:
    """Random requests of random sizes for so many seconds. Half of them are about one property of a body."""

    def plan(attacker: Attacker, requests: list[HostileRequest]) -> Iterator[Measurement]:
        rng = random.Random(seed)
        kinds = [
            [hostile for hostile in requests if (hostile.component_property is None) == general]
            for general in (True, False)
        ]
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            hostile = rng.choice(rng.choice(kinds))
            yield from attacker.run(
                hostile, [rng.choice(sizes(hostile, max_size=max(max_size, hostile.min_size)))], tries=1
            )

    return plan


def ordered(requests: Iterable[HostileRequest], *, seed: int, words: Sequence[str] = ()) -> list[HostileRequest]:
    """The requests whose names contain one of the words, all by default.

    Those about a single property come last, those to the first routes first; otherwise the order is random.
    """
    rng = random.Random(seed)

    def rank(hostile: HostileRequest) -> tuple[bool, bool, float]:
        return (hostile.component_property is not None, hostile.route not in FIRST_ROUTES, rng.random())

    return sorted((each for each in requests if not words or any(word in each.name for word in words)), key=rank)


def by_cost(requests: Iterable[HostileRequest], measurements: Iterable[Measurement]) -> list[HostileRequest]:
    """The requests that were sent, in the order of their time and memory per byte, most first."""
    cost: dict[str, float] = {}
    for one in measurements:
        cost[one.name] = (one.seconds + one.stall + one.peak / (100 * MIB)) / max(one.size, KIB)
    return sorted((hostile for hostile in requests if hostile.name in cost), key=lambda hostile: -cost[hostile.name])


def sizes(hostile: HostileRequest, *, max_size: int) -> list[int]:
    """Sizes that double, from the smallest on."""
    steps = [hostile.min_size]
    while 2 * steps[-1] <= min(hostile.max_size, max_size):
        steps.append(2 * steps[-1])
    return steps
