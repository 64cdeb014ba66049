"""The results of a trace: milliseconds of a step by cause."""

import json
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.perf.load.processes import ThreadUsage

from .points import DISPATCHING, EVALUATING, IDLE, STEP
from .startup_path import startup_environment
from .tracer import PAUSE_SECONDS, PHASE_FILE

MLX = (STEP, DISPATCHING, EVALUATING)
WORK_IN_MLX = "MLX's calls beyond bare: processor"
LOCK_IN_MLX = "MLX's calls beyond bare: waiting"
LOCK_OUTSIDE = "waiting for lock or core elsewhere"

Usages = Mapping[int, Mapping[int, ThreadUsage]]
"""Usage by process and thread."""


class Times(NamedTuple):
    """Milliseconds of a step for one cause."""

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True)
class StepTimes:
    """The mean step of one phase and batch size."""

    steps: int
    causes: Mapping[str, Times]

    @property
    def wall(self) -> float:
        """The whole step without idle time."""
        return sum(spent.wall for cause, spent in self.causes.items() if cause != IDLE)

    @property
    def mlx(self) -> float:
        """The time in MLX's generator."""
        return sum(self.causes[cause].wall for cause in MLX if cause in self.causes)

    @property
    def mlx_cpu(self) -> float:
        """The processor time in MLX's generator."""
        return sum(self.causes[cause].cpu for cause in MLX if cause in self.causes)

    def outside(self, bare: "StepTimes") -> dict[str, float]:
        """Milliseconds outside MLX by cause, the largest first: the processor time of each cause, and the waiting time.

        The time of MLX's calls beyond those of the bare step is included: their processor time, and their waiting
        time, which is for the lock, for a core, or for computations of samplers on the device.
        """
        outside: dict[str, float] = defaultdict(float)
        for cause, spent in self.causes.items():
            if cause in MLX or cause == IDLE:
                continue
            outside[cause] += spent.cpu
            outside[LOCK_OUTSIDE] += spent.wall - spent.cpu
        outside[WORK_IN_MLX] = self.mlx_cpu - bare.mlx_cpu
        outside[LOCK_IN_MLX] = self.mlx - bare.mlx - outside[WORK_IN_MLX]
        return dict(sorted(outside.items(), key=lambda item: -item[1]))


class TraceDirectory:
    """The directory in which traced processes of one server write, and from which they read the current phase."""

    def __init__(self, path: Path) -> None:
        self.environment = startup_environment("BENCH_TRACE_DIR", path)
        """Environment variables of the traced processes."""
        self.path = path

    def begin(self, phase: str) -> None:
        """Start a phase."""
        (self.path / PHASE_FILE).write_text(phase)
        time.sleep(2 * PAUSE_SECONDS)

    def step_times(self, phase: str, size: int) -> StepTimes | None:
        """The mean step of a phase with ``size`` sequences, in all processes."""
        steps = 0
        totals: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for content in self._dumps():
            bucket = content["phases"].get(phase, {}).get(str(size))
            if bucket is None:
                continue
            steps += bucket["steps"]
            for cause, (wall, cpu, _) in bucket["causes"].items():
                totals[cause][0] += wall
                totals[cause][1] += cpu
        if not steps:
            return None
        causes = {cause: Times(wall / steps * 1000, cpu / steps * 1000) for cause, (wall, cpu) in totals.items()}
        return StepTimes(steps, causes)

    def thread_names(self) -> dict[int, str]:
        """The names of Python's threads, by their ids in the system."""
        return {int(number): name for content in self._dumps() for number, name in content["threads"].items()}

    def _dumps(self) -> list[dict[str, Any]]:
        return [json.loads(file.read_text()) for file in self.path.glob("trace-*.json")]


def by_thread(before: Usages, after: Usages, names: Mapping[int, str]) -> dict[str, ThreadUsage]:
    """The usage between two readings by the names of threads without their numbers, the largest first.

    Threads in a traced process that Python didn't start belong to MLX or OpenBLAS.
    """
    found: dict[str, ThreadUsage] = {}
    for process, threads in after.items():
        is_traced = any(number in names for number in threads)
        for number, usage in threads.items():
            earlier = before.get(process, {}).get(number, ThreadUsage(0.0, 0.0))
            name = names.get(number, "MLX and OpenBLAS" if is_traced else "other processes").rstrip("0123456789-_")
            known = found.get(name, ThreadUsage(0.0, 0.0))
            found[name] = ThreadUsage(
                known.cpu_seconds + usage.cpu_seconds - earlier.cpu_seconds,
                known.queued_seconds + usage.queued_seconds - earlier.queued_seconds,
            )
    return dict(sorted(found.items(), key=lambda item: -item[1].cpu_seconds))
