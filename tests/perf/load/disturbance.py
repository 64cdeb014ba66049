"""The processor use of other programs during a measurement, which makes its figures unreliable."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from .processes import usage_of

Result = TypeVar("Result")

MAX_CORES = 0.1
"""Limit in cores, above which a measurement is repeated."""
_SERVICES = ("postgres", "redis-server")
"""They belong to the measured server."""


class Disturbance:
    """Measures the processor use of other programs since its creation; always 0 except on Linux."""

    def __init__(self) -> None:
        self._started_at = time.perf_counter()
        self._before = _others()

    def cores(self) -> float:
        """The mean number of cores that other programs used."""
        return max(0.0, _others() - self._before) / (time.perf_counter() - self._started_at)

    def warn(self) -> float:
        """The same; prints a warning if it is above the limit."""
        cores = self.cores()
        if cores > MAX_CORES:
            print(f"    other programs used {cores:.2f} cores meanwhile: these figures are unreliable", flush=True)
        return cores


def undisturbed(run: Callable[[int], Result], *, tries: int) -> tuple[Result, float]:
    """The result of the least disturbed attempt, and the cores that other programs used during it.

    ``run`` gets the number of the attempt, to use other prompts each time, which are not in a prefix cache.
    """
    best: tuple[Result, float] | None = None
    for number in range(tries):
        disturbance = Disturbance()
        result = run(number)
        cores = disturbance.cores()
        if best is None or cores < best[1]:
            best = result, cores
        if cores <= MAX_CORES:
            break
    assert best is not None
    return best


def _others() -> float:
    """Processor seconds of all programs except this process, its descendants and the services."""
    if sys.platform != "linux":
        return 0.0
    ticks = os.sysconf("SC_CLK_TCK")
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    busy = (sum(fields) - fields[3] - fields[4]) / ticks
    return busy - usage_of(os.getpid(), also=_SERVICES).cpu_seconds
