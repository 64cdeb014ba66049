"""The time of a step by its causes (`tests.perf.trace.points`): a traced run with the tiny model.

The trace takes about a microsecond per traced call, so these steps are longer than those that are compared.
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

from .tiny import LEVELS, SETTINGS, Runner, Served, child, stream_count, tiny_models, tokens_of, work

NAMES = "bare", "engine", "embedded", "team"
MIN_SHOWN_MS = 0.02
COLUMN = max(map(len, (*MLX, WORK_IN_MLX, LOCK_IN_MLX, LOCK_OUTSIDE)))
KINDS: tuple[SamplingKind, ...] = ("greedy", "own")


def run(options: Options, report: Report) -> None:
    """Trace each alternative."""
    phases = [(kind, level) for kind in KINDS for level in options.levels(*LEVELS)]
    traced = {name: times for name in NAMES if (times := trace(name, phases, options, report))}
    add_causes(traced, report)


def trace(name: str, phases: list[tuple[SamplingKind, int]], options: Options, report: Report) -> dict[str, StepTimes]:
    """The mean step of each phase; empty if the alternative can't run here."""
    directory = TraceDirectory(options.directory / f"trace-{name}")
    usage: list[tuple[Usages, Usages]] = []
    with traced_runner(name, options, directory) as (runner, pid):
        if runner is None:
            return {}
        runner.run(work("warm", 8, 100))
        for kind, level in phases:
            directory.begin(f"{kind}/{level}")
            before = thread_usage(pid)
            runner.run(work(f"traced/{kind}", level, tokens_of(options, level), kind))
            usage.append((before, thread_usage(pid)))
    # The traced processes write their counts when they are idle, and at their end.
    names = directory.thread_names()
    for (kind, level), readings in zip(phases, usage, strict=True):
        threads = by_thread(*readings, names)
        report.add_details(
            f"trace/{name}/{kind}/{level}", {"threads": {thread: used._asdict() for thread, used in threads.items()}}
        )
    return {
        f"{kind}/{level}": times
        for kind, level in phases
        if (times := directory.step_times(f"{kind}/{level}", level)) is not None
    }


@contextmanager
def traced_runner(name: str, options: Options, directory: TraceDirectory) -> Iterator[tuple[Runner | None, int]]:
    """One alternative and the id of its process, with the trace enabled."""
    models = tiny_models(options)
    if name in ("bare", "engine"):
        with child(name, models, directory.environment) as started:
            yield started, started.process.pid
        return
    start = embedded_server if name == "embedded" else small_team
    settings = {**SETTINGS, **options.settings, **directory.environment}
    with start(options.directory / f"tiny-traced-{name}", settings, models=models) as server:
        if server is None:
            yield None, 0
            return
        assert server.process is not None
        yield Served(server), server.process.pid


def add_causes(traced: Mapping[str, Mapping[str, StepTimes]], report: Report) -> None:
    """Print and store the milliseconds of a step by cause."""
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
            print(f"traced, {kind}, {stream_count(int(level))}, {name}: {times.wall:.2f} ms a step")
            for cause in MLX:
                spent = times.causes[cause]
                print(f"    {cause:{COLUMN}} {spent.wall:7.3f} ms, of the processor {spent.cpu:.3f}")
            for cause, value in summarise(outside).items():
                print(f"    {cause:{COLUMN}} {value:7.3f} ms")
            print("    threads: " + format_threads(details["threads"]), flush=True)


def summarise(causes: Mapping[str, float]) -> dict[str, float]:
    """The sum, the large values, and the sum of the others."""
    large = {cause: value for cause, value in causes.items() if abs(value) >= MIN_SHOWN_MS}
    return {"outside MLX": sum(causes.values()), **large, "others": sum(causes.values()) - sum(large.values())}


def format_threads(threads: Mapping[str, Mapping[str, float]]) -> str:
    """The threads with the most processor time, as text."""
    return ", ".join(
        f"{name} {usage['cpu_seconds']:.2f} s (queued {usage['queued_seconds']:.2f})"
        for name, usage in list(threads.items())[:7]
    )
