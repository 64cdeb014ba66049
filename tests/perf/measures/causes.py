"""Where the time of a step goes: the tiny model once more, traced, by the causes of `tests.perf.trace.points`.

The trace itself takes about a microsecond for each traced call: these steps are longer than those that are compared.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.perf.engines.child import SamplingKind
from tests.perf.load.processes import thread_usage
from tests.perf.load.servers import embedded_server, small_team
from tests.perf.options import Options
from tests.perf.report import Report
from tests.perf.trace.table import (
    LOCK_IN_MLX,
    LOCK_OUTSIDE,
    MLX,
    WORK_IN_MLX,
    StepTimes,
    TraceDirectory,
    Usages,
    by_thread,
)

from .tiny import LEVELS, SETTINGS, Runner, Served, child, counted, tiny_models, tokens_of, work

NAMES = "bare", "engine", "embedded", "team"
LEAST_MS = 0.02
COLUMN = max(map(len, (*MLX, WORK_IN_MLX, LOCK_IN_MLX, LOCK_OUTSIDE)))
KINDS: tuple[SamplingKind, ...] = ("greedy", "own")


def run(options: Options, report: Report) -> None:
    """Trace each of those that are compared."""
    phases = [(kind, level) for kind in KINDS for level in options.levels(*LEVELS)]
    traced = {name: times for name in NAMES if (times := trace(name, phases, options, report))}
    note_causes(traced, report)


def trace(name: str, phases: list[tuple[SamplingKind, int]], options: Options, report: Report) -> dict[str, StepTimes]:
    """The mean step of each phase; none where it can't be run."""
    directory = TraceDirectory(options.work / f"trace-{name}")
    usage: list[tuple[Usages, Usages]] = []
    with traced_runner(name, options, directory) as (thing, pid):
        if thing is None:
            return {}
        thing.run(work("warm", 8, 100))
        for kind, level in phases:
            directory.begin(f"{kind}/{level}")
            before = thread_usage(pid)
            thing.run(work(f"traced/{kind}", level, tokens_of(options, level), kind))
            usage.append((before, thread_usage(pid)))
    # The traced processes have written what they counted when they were idle, or at their end.
    names = directory.thread_names()
    for (kind, level), readings in zip(phases, usage, strict=True):
        threads = by_thread(*readings, names)
        report.note_details(
            f"trace/{name}/{kind}/{level}", {"threads": {thread: used._asdict() for thread, used in threads.items()}}
        )
    return {
        f"{kind}/{level}": times
        for kind, level in phases
        if (times := directory.step_times(f"{kind}/{level}", level)) is not None
    }


@contextmanager
def traced_runner(name: str, options: Options, directory: TraceDirectory) -> Iterator[tuple[Runner | None, int]]:
    """One of those that are compared, and its process, with the trace switched on."""
    models = tiny_models(options)
    if name in ("bare", "engine"):
        with child(name, models, directory.environment) as started:
            yield started, started.process.pid
        return
    start = embedded_server if name == "embedded" else small_team
    settings = {**SETTINGS, **options.settings, **directory.environment}
    with start(options.work / f"tiny-traced-{name}", settings, models=models) as server:
        if server is None:
            yield None, 0
            return
        assert server.process is not None
        yield Served(server), server.process.pid


def note_causes(traced: Mapping[str, Mapping[str, StepTimes]], report: Report) -> None:
    """Print and keep the milliseconds of a step, by cause."""
    for name, phases in traced.items():
        for phase, times in phases.items():
            bare = traced["bare"].get(phase)
            if bare is None:
                continue
            kind, _, level = phase.partition("/")
            outside = {} if name == "bare" else times.outside(bare)
            details: dict[str, Any] = report.details[f"trace/{name}/{phase}"]
            details |= {
                "steps": times.steps,
                "step_ms": round(times.wall, 4),
                "causes_ms": {
                    cause: {"wall": round(spent.wall, 4), "cpu": round(spent.cpu, 4)}
                    for cause, spent in sorted(times.causes.items(), key=lambda item: -item[1].wall)
                },
                "outside_ms": {cause: round(value, 4) for cause, value in outside.items()},
            }
            print(f"traced, {kind}, {counted(int(level))}, {name}: {times.wall:.2f} ms a step")
            for cause in MLX:
                spent = times.causes[cause]
                print(f"    {cause:{COLUMN}} {spent.wall:7.3f} ms, of the processor {spent.cpu:.3f}")
            for cause, value in shortened(outside).items():
                print(f"    {cause:{COLUMN}} {value:7.3f} ms")
            print("    threads: " + shown_threads(details["threads"]), flush=True)


def shortened(causes: Mapping[str, float]) -> dict[str, float]:
    """The sum, what counts, and the rest."""
    large = {cause: value for cause, value in causes.items() if abs(value) >= LEAST_MS}
    return {"outside MLX": sum(causes.values()), **large, "the rest": sum(causes.values()) - sum(large.values())}


def shown_threads(threads: Mapping[str, Mapping[str, float]]) -> str:
    """The threads that use the most."""
    return ", ".join(
        f"{name} {usage['cpu_seconds']:.2f} s (queued {usage['queued_seconds']:.2f})"
        for name, usage in list(threads.items())[:7]
    )
