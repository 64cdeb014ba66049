"""Which hostile requests are sent, in which order and of which sizes."""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Iterable, Iterator, Sequence

from tests.hostile.requests.client import Manner
from tests.hostile.requests.corpus import Hostile

from . import KIB, MIB
from .measure import Bench, Measured
from .run import Plan

FIRST_SHARE = 0.6
"""Of the time, for all requests at their two smallest sizes."""
FIRST_ROUTES = ("POST /v1/responses",)
TRIES = 3
AT_ONCE = 8


def everything(*, seconds: float, seed: int, words: Sequence[str] = (), most: int = 64 * MIB) -> Plan:
    """Every request small, then those that cost most at sizes that double, as long as there is time.

    `words`: only requests whose name has one of them.
    """

    def plan(bench: Bench, requests: list[Hostile]) -> Iterator[Measured]:
        wanted = [one for one in ordered(requests, seed=seed) if not words or any(word in one.name for word in words)]
        deadline = time.monotonic() + seconds
        small: list[Measured] = []
        for one in wanted:
            if time.monotonic() > deadline - seconds * (1 - FIRST_SHARE):
                break
            for measured in bench.run(one, sizes(one, most=2 * one.smallest), tries=TRIES):
                small.append(measured)
                yield measured
        for one in by_cost(wanted, small):
            if time.monotonic() > deadline:
                return
            if larger := sizes(one, most=most)[2:]:
                yield from bench.run(one, larger, tries=TRIES)

    return plan


def every_kind(*, seed: int, words: Sequence[str] = (), at_once: int = AT_ONCE) -> Plan:
    """Every request once, however long it takes, so many kinds at a time; alone what comes many at once itself."""

    def plan(bench: Bench, requests: list[Hostile]) -> Iterator[Measured]:
        wanted = [one for one in ordered(requests, seed=seed) if not words or any(word in one.name for word in words)]
        several = [one for one in wanted if one.at_once == 1 and one.manner is Manner.WHOLE]
        for one in wanted:
            if one.at_once > 1 or one.manner is not Manner.WHOLE:
                yield from bench.run(one, sizes(one, most=2 * one.smallest), tries=TRIES)
        began = time.monotonic()
        for start in range(0, len(several), at_once):
            yield from bench.screen(several[start : start + at_once])
            if start % 2000 < at_once:
                print(f"{start} of {len(several)} kinds after {time.monotonic() - began:.0f} s", flush=True)

    return plan


def one_after_the_other(*plans: Plan) -> Plan:
    """All of these plans."""

    def plan(bench: Bench, requests: list[Hostile]) -> Iterator[Measured]:
        for each in plans:
            yield from each(bench, requests)

    return plan


def only(names: Collection[str]) -> Plan:
    """These requests at twice their smallest size, tried once."""

    def plan(bench: Bench, requests: list[Hostile]) -> Iterator[Measured]:
        by_name = {one.name: one for one in requests}
        for name in names:
            one = by_name[name]
            yield from bench.run(one, [2 * one.smallest], tries=1)

    return plan


def at_random(*, seconds: float, seed: int, most: int = 4 * MIB) -> Plan:
    """Any request of any size, one after the other, until the time is over; properties as often as all else."""

    def plan(bench: Bench, requests: list[Hostile]) -> Iterator[Measured]:
        chance = random.Random(seed)
        kinds = [[one for one in requests if (one.about is None) == general] for general in (True, False)]
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            one = chance.choice(chance.choice(kinds))
            yield from bench.run(one, [chance.choice(sizes(one, most=max(most, one.smallest)))], tries=1)

    return plan


def ordered(requests: Iterable[Hostile], *, seed: int) -> list[Hostile]:
    """What is repeated and what is no property's first, then the first routes; else in another order every time."""
    chance = random.Random(seed)

    def rank(one: Hostile) -> tuple[bool, bool, float]:
        return (one.about is not None, one.route not in FIRST_ROUTES, chance.random())

    return sorted(requests, key=rank)


def by_cost(requests: Iterable[Hostile], measured: Iterable[Measured]) -> list[Hostile]:
    """Those that were sent, first those that took most time and memory for each byte."""
    cost: dict[str, float] = {}
    for one in measured:
        cost[one.name] = (one.seconds + one.stall + one.peak / (100 * MIB)) / max(one.size, KIB)
    return sorted((one for one in requests if one.name in cost), key=lambda one: -cost[one.name])


def sizes(hostile: Hostile, *, most: int) -> list[int]:
    """Sizes that double, from the smallest on."""
    found = [hostile.smallest]
    while 2 * found[-1] <= min(hostile.largest, most):
        found.append(2 * found[-1])
    return found
