"""`make bench`: measures every figure that the project promises, and compares it with its limit.

python -m tests.perf.bench [NAME …] [--short] [--streams 1,8] [--set NAME=VALUE …] [--json FILE] [--publish]

No other program should run meanwhile. Alternatives take turns in one run, three times, and their medians are compared.
The figures are stored in a JSON file: a run of some measurements replaces their figures and keeps the others. `--short`
is for CI: it stores ratios without comparing them with limits. `--publish` writes the stored figures into
docs/performance.md, after the named measurements, if any.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from responses_site.setting_kinds import BASE_DIR

from . import chain, constraints, latency
from .document import publish
from .load.disturbance import Disturbance
from .measures import (
    causes,
    default_model,
    events,
    long_prompt,
    memory,
    neighbour,
    repetition,
    requests,
    tiny,
    turns,
)
from .options import Options
from .report import Report

MEASURES: dict[str, Callable[[Options, Report], None]] = {
    "tiny": tiny.run,
    "causes": causes.run,
    "default": default_model.run,
    "requests": requests.run,
    "long-prompt": long_prompt.run,
    "turns": turns.run,
    "memory": memory.run,
    "repetition": repetition.run,
    "neighbour": neighbour.run,
    "events": events.run,
    "constraints": constraints.run,
    "latency": latency.run,
    "chain": chain.run,
}
SHORT = ("tiny", "events")
FIGURES_DIR = BASE_DIR / ".bench"
"""The directory of the figures, unless `--json` names a file."""


def main() -> int:
    """Run the named measurements. Returns 0 if all figures are within their limits, or with `--short`."""
    parser = argparse.ArgumentParser(description="Measure what the project promises.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(MEASURES)}; all by default")
    parser.add_argument("--short", action="store_true", help="one round of the quickest measurements, without limits")
    parser.add_argument("--streams", type=numbers, metavar="N,…", help="only these numbers of streams")
    parser.add_argument(
        "--set",
        type=pair,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of this project's servers",
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="the number of rounds (default 3; with --short 1)")
    parser.add_argument(
        "--against",
        type=pair,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of a second server of this project",
    )
    parser.add_argument(
        "--peers",
        type=Path,
        action="append",
        default=[],
        metavar="VENV",
        help="a virtual environment with other servers",
    )
    parser.add_argument("--publish", action="store_true", help="write the stored figures into docs/performance.md")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the file of the figures")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that servers are stopped
    unknown = set(arguments.names) - set(MEASURES)
    if unknown:
        parser.error(f"There is no measurement {min(unknown)!r}.")
    report = Report.read(arguments.json or FIGURES_DIR / ("short.json" if arguments.short else "figures.json"))
    with tempfile.TemporaryDirectory(prefix="responses-bench-") as directory:
        options = Options(
            directory=Path(directory),
            is_short=arguments.short,
            rounds=arguments.rounds or (1 if arguments.short else 3),
            streams=arguments.streams,
            settings=dict(arguments.set),
            against=dict(arguments.against),
            peers=tuple(path.resolve() for path in arguments.peers),
        )
        for name in arguments.names or (SHORT if arguments.short else () if arguments.publish else MEASURES):
            disturbance = Disturbance()
            MEASURES[name](options, report)
            report.add_details(f"disturbance/{name}", {"cores_of_others": disturbance.warn()})
            report.write()
    if arguments.publish:
        publish(report)
    return 1 if report.missed and not arguments.short else 0


def numbers(text: str) -> tuple[int, ...]:
    """Parse numbers that are separated by commas."""
    return tuple(int(part) for part in text.split(","))


def pair(text: str) -> tuple[str, str]:
    """Parse NAME=VALUE."""
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


if __name__ == "__main__":
    sys.exit(main())
