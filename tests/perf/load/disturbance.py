"""How much of the machine others used during a measurement: figures from a busy machine mean little."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from .processes import usage_of

Result = TypeVar("Result")

MOST = 0.1
"""Of one core: a measurement with more is repeated."""
TRIES = 2
_SERVICES = ("postgres", "redis-server")
"""They work for the server that is measured."""


class Disturbance:
    """Counts since it was made. Only on Linux; elsewhere there never was any."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._before = _others()

    def cores(self) -> float:
        """How many cores others have kept busy on average."""
        return max(0.0, _others() - self._before) / (time.perf_counter() - self._began)


def undisturbed(run: Callable[[], Result]) -> tuple[Result, float]:
    """The result of the run that others disturbed least, of up to two, and how many cores they kept busy then."""
    best: tuple[Result, float] | None = None
    for _ in range(TRIES):
        disturbance = Disturbance()
        result = run()
        cores = disturbance.cores()
        if best is None or cores < best[1]:
            best = result, cores
        if cores <= MOST:
            break
    assert best is not None
    return best


def _others() -> float:
    """Processor seconds of everything but this process, what it has started, and the services."""
    if sys.platform != "linux":
        return 0.0
    ticks = os.sysconf("SC_CLK_TCK")
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    busy = (sum(fields) - fields[3] - fields[4]) / ticks
    return busy - usage_of(os.getpid(), also=_SERVICES).cpu_seconds
