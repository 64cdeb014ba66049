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

    def tell(self) -> float:
        """The same, and a line of warning when it is too much."""
        cores = self.cores()
        if cores > MOST:
            print(f"    others kept {cores:.2f} cores busy meanwhile: these figures mean little", flush=True)
        return cores


def undisturbed(run: Callable[[int], Result], *, tries: int) -> tuple[Result, float]:
    """The result of the run that others disturbed least, and how many cores they kept busy then.

    ``run`` is given the number of the try, to make other prompts each time: a prefix cache knows those of before.
    """
    best: tuple[Result, float] | None = None
    for number in range(tries):
        disturbance = Disturbance()
        result = run(number)
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
