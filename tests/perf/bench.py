"""`make bench`: every figure that the project promises, each beside its limit. Nothing else should run meanwhile.

python -m tests.perf.bench [NAME …] [--short] [--streams 1,8] [--set NAME=VALUE …] [--json FILE] [--publish]

What is compared takes turns in one run, three times, and the medians count. The figures are kept in a JSON file: a run
of some measurements replaces theirs and leaves the others. `--short` is for CI: it keeps ratios and holds them to
nothing. `--publish` writes the kept figures into docs/performance.md, after the measurements that are named, if any.
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
    "repetition": repetition.run,
    "neighbour": neighbour.run,
    "events": events.run,
    "constraints": constraints.run,
    "latency": latency.run,
    "chain": chain.run,
}
SHORT = ("tiny", "events")
KEPT = BASE_DIR / ".bench"
"""Where figures are kept unless `--json` says otherwise."""


def main() -> int:
    """Run what was asked for; 0 when all figures are within their limits, or with `--short`."""
    parser = argparse.ArgumentParser(description="Measure what the project promises.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MEASURES)}; without one, all")
    parser.add_argument("--short", action="store_true", help="one round of the quickest ones, held to no limit")
    parser.add_argument("--streams", type=numbers, metavar="N,…", help="only with so many streams")
    parser.add_argument("--set", type=pair, action="append", default=[], metavar="NAME=VALUE", help="for our servers")
    parser.add_argument("--rounds", type=int, metavar="N", help="how often each is measured (3; with --short 1)")
    parser.add_argument(
        "--against", type=pair, action="append", default=[], metavar="NAME=VALUE", help="for a second server of ours"
    )
    parser.add_argument("--peers", type=Path, action="append", default=[], metavar="VENV", help="has other servers")
    parser.add_argument("--publish", action="store_true", help="write the kept figures into docs/performance.md")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the figures are kept")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # servers are ended then, too
    unknown = set(arguments.names) - set(MEASURES)
    if unknown:
        parser.error(f"there is no measurement {min(unknown)!r}")
    report = Report.read(arguments.json or KEPT / ("short.json" if arguments.short else "figures.json"))
    with tempfile.TemporaryDirectory(prefix="responses-bench-") as work:
        options = Options(
            work=Path(work),
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
            report.note_details(f"disturbance/{name}", {"cores_of_others": disturbance.tell()})
            report.write()
    if arguments.publish:
        publish(report)
    return 1 if report.missed and not arguments.short else 0


def numbers(text: str) -> tuple[int, ...]:
    """Numbers with commas between them."""
    return tuple(int(part) for part in text.split(","))


def pair(text: str) -> tuple[str, str]:
    """NAME=VALUE."""
    name, found, value = text.partition("=")
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


if __name__ == "__main__":
    sys.exit(main())
