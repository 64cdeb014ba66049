"""What a trace says: milliseconds of a step, by cause."""

import json
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.perf.load.processes import ThreadUsage

from .points import DISPATCHING, EVALUATING, IDLE, STEP
from .startup_path import watched_by
from .tracer import PAUSE_SECONDS, PHASE_FILE

MLX = (STEP, DISPATCHING, EVALUATING)
WORK_IN_MLX = "MLX's calls beyond bare: processor"
LOCK_IN_MLX = "MLX's calls beyond bare: waiting"
LOCK_OUTSIDE = "waiting for lock or core elsewhere"

Usages = Mapping[int, Mapping[int, ThreadUsage]]
"""Of threads, by process."""


class Spent(NamedTuple):
    """Milliseconds of a step that one cause takes."""

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True)
class StepTimes:
    """A mean step of one phase and size of batch."""

    steps: int
    causes: Mapping[str, Spent]

    @property
    def wall(self) -> float:
        """The whole step without being idle."""
        return sum(spent.wall for cause, spent in self.causes.items() if cause != IDLE)

    @property
    def mlx(self) -> float:
        """Inside MLX's generator."""
        return sum(self.causes[cause].wall for cause in MLX if cause in self.causes)

    @property
    def mlx_cpu(self) -> float:
        """The processor time of the same."""
        return sum(self.causes[cause].cpu for cause in MLX if cause in self.causes)

    def outside(self, bare: "StepTimes") -> dict[str, float]:
        """Milliseconds outside MLX by cause, the largest first: each cause's processor time, and the waiting.

        What MLX's own calls take beyond those of the bare step counts, too: processor time apart from waiting, which
        is for the lock, for a core, or for what samplers had the device compute.
        """
        found: dict[str, float] = defaultdict(float)
        for cause, spent in self.causes.items():
            if cause in MLX or cause == IDLE:
                continue
            found[cause] += spent.cpu
            found[LOCK_OUTSIDE] += spent.wall - spent.cpu
        found[WORK_IN_MLX] = self.mlx_cpu - bare.mlx_cpu
        found[LOCK_IN_MLX] = self.mlx - bare.mlx - found[WORK_IN_MLX]
        return dict(sorted(found.items(), key=lambda item: -item[1]))


class TraceDirectory:
    """Where the traced processes of one server write, and read what is measured now."""

    def __init__(self, path: Path) -> None:
        self.environment = watched_by("BENCH_TRACE_DIR", path)
        """What the traced processes are given."""
        self.path = path

    def begin(self, phase: str) -> None:
        """What is generated from now on is of this phase."""
        (self.path / PHASE_FILE).write_text(phase)
        time.sleep(2 * PAUSE_SECONDS)

    def step_times(self, phase: str, size: int) -> StepTimes | None:
        """The mean step of a phase with so many sequences, of all processes."""
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
        causes = {cause: Spent(wall / steps * 1000, cpu / steps * 1000) for cause, (wall, cpu) in totals.items()}
        return StepTimes(steps, causes)

    def thread_names(self) -> dict[int, str]:
        """Python's names of the system's threads."""
        return {int(number): name for content in self._dumps() for number, name in content["threads"].items()}

    def _dumps(self) -> list[dict[str, Any]]:
        return [json.loads(file.read_text()) for file in self.path.glob("trace-*.json")]


def by_thread(before: Usages, after: Usages, names: Mapping[int, str]) -> dict[str, ThreadUsage]:
    """The usage between two readings by the thread's name, numbers in it left out; the largest first. A thread that
    Python didn't start in a process that is traced is MLX's or OpenBLAS's.
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
