"""The effect of a long prompt on running streams: the gaps between their tokens before and while it is read.

Four streams of the default model run for some seconds, then a prompt of 4,000 tokens is sent, which is read until its
first token. Servers take turns.
"""

import statistics
import time
from typing import NamedTuple

from tests.perf.load.contenders import OURS, Contender, contenders
from tests.perf.load.prompts import notes, story
from tests.perf.load.rates import gaps, percentile
from tests.perf.load.streams import StreamReader
from tests.perf.options import Options
from tests.perf.report import Figure, Report

STREAMS = 4
STREAM_TOKENS = 600
PROMPT_TOKENS = 4000
BEFORE_SECONDS = 5.0
MAX_RATIO = 3.0


class Gaps(NamedTuple):
    """Gaps between deltas, in seconds."""

    before_p95: float
    during_p95: float
    during_longest: float
    first_token: float
    """Seconds to the first token of the long prompt."""


def run(options: Options, report: Report) -> None:
    """Measure the servers in turn."""
    with contenders(options, "long-prompt") as servers:
        results: dict[str, list[Gaps]] = {server.name: [] for server in servers}
        for number in range(options.rounds):
            for server in servers:
                results[server.name].append(measure(server, number))
    for name, rounds in results.items():
        add_figures(name, rounds, report)


def measure(server: Contender, number: int) -> Gaps:
    """Measure one server once. Streams that still run at the end are closed."""
    target = server.target
    reader = StreamReader()
    try:
        streams = []
        for index in range(STREAMS):
            messages = [{"role": "user", "content": story(f"beside/{number}/{index}")}]
            streams.append(reader.send(target, target.body(messages, tokens=STREAM_TOKENS)))
        reader.read(count=STREAMS)
        begin = time.perf_counter()
        reader.read(until=begin + BEFORE_SECONDS)
        middle = time.perf_counter()
        messages = [{"role": "user", "content": notes(PROMPT_TOKENS, f"{number}") + " Name the archive."}]
        long = reader.send(target, target.body(messages, tokens=8))
        reader.read(count=STREAMS + 1)
        end = long.times[0]
    finally:
        reader.close()
    before, during = gaps(streams, begin=begin, end=middle), gaps(streams, begin=middle, end=end)
    return Gaps(percentile(before, 95), percentile(during, 95), max(during), long.first)


def add_figures(name: str, rounds: list[Gaps], report: Report) -> None:
    """Store the medians."""
    report.add_details(f"long-prompt/{name}", [result._asdict() for result in rounds])
    ratio = statistics.median(result.during_p95 / result.before_p95 for result in rounds)
    title = f"{STREAMS} streams while {PROMPT_TOKENS:,} tokens are read, {name}"
    figures = {
        "ratio": Figure(
            title=f"{title}, gap p95 / without",
            value=ratio,
            at_most=MAX_RATIO if name == OURS else None,
        ),
        "before": Figure(
            title=f"{title}, gap p95 without", value=statistics.median(s.before_p95 for s in rounds) * 1000, unit="ms"
        ),
        "most": Figure(
            title=f"{title}, longest gap", value=statistics.median(s.during_longest for s in rounds) * 1000, unit="ms"
        ),
        "first": Figure(
            title=f"{title}, its first token", value=statistics.median(s.first_token for s in rounds), unit="s"
        ),
    }
    for key, figure in figures.items():
        report.add(f"long-prompt/{name}/{key}", figure)
