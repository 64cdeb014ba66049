"""Measures the wall and processor time of one thread by cause, with replacements of the functions in `points`.

Wall time without processor time is waiting: for the interpreter lock or a core; in MLX's calls, also for the device.
The project doesn't depend on this: Python imports it at its start if `BENCH_TRACE_DIR` and `PYTHONPATH` are set (see
`startup/sitecustomize.py`).
"""

import atexit
import functools
import gc
import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from .patching import Patch, patch_on_import
from .points import COLLECTING, DECODER, FACTORIES, FUNCTIONS, GENERATOR, IDLE, LOOP, READING, ROOTS

PHASE_FILE = "phase"
PAUSE_SECONDS = 0.05
"""After a pause of this length the phase is read again."""


class Trace:
    """The times of the traced thread, in one bucket per phase of the benchmark and batch size."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.owner = 0
        """The id of the traced thread."""
        self._stack: list[str] = []
        self._wall = self._cpu = 0.0
        self._times: dict[str, list[float]] = {}
        self._buckets: dict[tuple[str, str], dict[str, list[float]]] = {}
        self._steps: dict[tuple[str, str], int] = {}
        self._bucket: tuple[str, str] | None = None
        self._threads: dict[int | None, str] = {}
        self._phase = ""
        self._stepped = 0.0
        self._is_dirty = False

    def enter(self, cause: str) -> None:
        """Count the following time under this cause."""
        self._count()
        self._stack.append(cause)

    def leave(self) -> None:
        """Count the following time under the previous cause."""
        self._count()
        self._stack.pop()

    def _count(self) -> None:
        wall, cpu = time.perf_counter(), time.thread_time()
        if self._stack:
            times = self._times.setdefault(self._stack[-1], [0.0, 0.0, 0])
            times[0] += wall - self._wall
            times[1] += cpu - self._cpu
            times[2] += 1
        self._wall, self._cpu = wall, cpu

    def begin_turn(self) -> None:
        """Trace the calling thread until the turn ends."""
        self.owner = threading.get_ident()
        self._times = {}
        self._bucket = None
        self.enter(LOOP)

    def end_turn(self) -> None:
        """Add the turn to the bucket of its step. A turn without a step is not counted."""
        self.leave()
        self.owner = 0
        if self._bucket is None:
            return
        self._is_dirty = True
        self._steps[self._bucket] = self._steps.get(self._bucket, 0) + 1
        totals = self._buckets.setdefault(self._bucket, {})
        for cause, times in self._times.items():
            total = totals.setdefault(cause, [0.0, 0.0, 0])
            for index, value in enumerate(times):
                total[index] += value

    def step(self, sequences: int, *, reads_prompts: bool) -> None:
        """Record that the turn's step had ``sequences`` sequences."""
        now = time.perf_counter()
        if now - self._stepped > PAUSE_SECONDS:
            file = self._directory / PHASE_FILE
            self._phase = file.read_text() if file.exists() else ""
        self._stepped = now
        if sequences:
            self._bucket = self._phase, "prompts" if reads_prompts else str(sequences)

    def has_spent(self, cause: str) -> bool:
        """Whether this turn has spent time on a cause."""
        return cause in self._times

    def write(self) -> None:
        """Write all counts, unless they are the same as the last time."""
        if not self._is_dirty:
            return
        self._is_dirty = False
        phases: dict[str, dict[str, Any]] = {}
        for (phase, size), causes in self._buckets.items():
            phases.setdefault(phase, {})[size] = {"steps": self._steps[phase, size], "causes": causes}
        self._threads |= {thread.native_id: thread.name for thread in threading.enumerate()}
        file = self._directory / f"trace-{os.getpid()}.json"
        temporary = file.with_suffix(".tmp")
        temporary.write_text(json.dumps({"phases": phases, "threads": self._threads}))
        temporary.replace(file)


class Wrapping:
    """Replacements of functions that measure the time of their calls."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @property
    def patches(self) -> list[Patch]:
        """All replacements."""
        return [
            *((point, self._root) for point in ROOTS),
            (GENERATOR, self._generator),
            (DECODER, self._decoder),
            *((point, self._factory) for point in FACTORIES),
            *((point, self._function) for point in FUNCTIONS),
        ]

    def _root(self, function: Any, cause: str) -> Any:
        trace = self._trace

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            trace.begin_turn()
            try:
                return function(*args, **kwargs)
            finally:
                trace.end_turn()

        return call

    def _generator(self, function: Any, cause: str) -> Any:
        trace, traced = self._trace, self._function(function, cause)

        def call(*args: Any, **kwargs: Any) -> Any:
            prompts, responses = result = traced(*args, **kwargs)
            trace.step(len(responses), reads_prompts=bool(prompts))
            return result

        return call

    def _decoder(self, function: Any, cause: str) -> Any:
        trace, traced = self._trace, self._function(function, cause)

        def call(*args: Any, **kwargs: Any) -> Any:
            choices = traced(*args, **kwargs)
            trace.step(len({id(choice.row) for choice in choices}), reads_prompts=trace.has_spent(READING))
            return choices

        return call

    def _factory(self, function: Any, cause: str) -> Any:
        made: dict[int, tuple[Any, Any]] = {}

        def traced(inner: Any) -> Any:
            """One wrapper per function, as sequences that share a sampler are sampled together."""
            if id(inner) not in made:
                made[id(inner)] = inner, self._function(inner, cause)
            return made[id(inner)][1]

        def call(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            if result is None:
                return None
            return [traced(inner) for inner in result] if isinstance(result, list) else traced(result)

        return call

    def _function(self, function: Any, cause: str) -> Any:
        trace, get_ident = self._trace, threading.get_ident

        def call(*args: Any, **kwargs: Any) -> Any:
            if get_ident() != trace.owner:
                return function(*args, **kwargs)
            if cause == IDLE:
                trace.write()
            trace.enter(cause)
            try:
                return function(*args, **kwargs)
            finally:
                trace.leave()

        return call


def install(directory: Path) -> None:
    """Trace this process, and write ``trace-PID.json`` when it is idle and at its end."""
    trace = Trace(directory)
    patch_on_import(Wrapping(trace).patches)
    atexit.register(trace.write)

    def on_collection(phase: str, _: object) -> None:
        if threading.get_ident() == trace.owner:
            trace.enter(COLLECTING) if phase == "start" else trace.leave()

    gc.callbacks.append(on_collection)
