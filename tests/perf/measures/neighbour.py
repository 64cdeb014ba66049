"""The speed of the default model beside a program that keeps one core busy, compared with the quiet machine."""

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from tests.perf.load.contenders import Contender, ours
from tests.perf.load.prompts import story
from tests.perf.load.rates import tokens_per_second
from tests.perf.load.streams import run_streams
from tests.perf.options import Options
from tests.perf.report import Figure, Report

from .tiny import stream_count

LEVELS = 1, 8
TOKENS = 48
MIN_RATIO = 0.5
_SPIN = "while True: pass"


@contextmanager
def busy_neighbour() -> Iterator[None]:
    """A program that keeps one core busy; on Linux always the same core."""
    process = subprocess.Popen([sys.executable, "-c", _SPIN])
    try:
        if sys.platform == "linux":
            os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})
        yield
    finally:
        process.kill()
        process.wait()


def run(options: Options, report: Report) -> None:
    """Measure the quiet and the busy machine in turn."""
    with ours(options, "neighbour") as server:
        for level in options.levels(*LEVELS):
            rates: dict[str, list[float]] = {"quiet": [], "busy": []}
            for number in range(options.rounds):
                for name in rates:
                    with busy_neighbour() if name == "busy" else nullcontext():
                        rates[name].append(rate(server, level, f"{number}/{name}"))
            report.add_details(f"neighbour/{level}", rates)
            ratio = statistics.median(busy / quiet for quiet, busy in zip(*rates.values(), strict=True))
            title = f"default model, {stream_count(level)}, beside a busy program / alone, tokens a second"
            report.add(f"neighbour/{level}/ratio", Figure(title=title, value=ratio, at_least=MIN_RATIO))


def rate(server: Contender, level: int, seed: str) -> float:
    """Tokens a second of ``level`` streams."""
    target = server.target
    bodies = [
        target.body([{"role": "user", "content": story(f"neighbour/{seed}/{index}")}], tokens=TOKENS)
        for index in range(level)
    ]
    return tokens_per_second(run_streams(target, bodies))
