"""What running streams feel of a long prompt: the gap between their tokens while it is read, against before.

Four streams of the default model run for some seconds, then a prompt of 4,000 tokens is sent; until its first token the
gaps between the deltas of the four are those with it. All servers in turn.
"""

import statistics
import time
from typing import NamedTuple

from tests.perf.load.contenders import OURS, Contender, contenders
from tests.perf.load.prompts import notes, story
from tests.perf.load.rates import gaps, percentile
from tests.perf.load.streams import Reading
from tests.perf.options import Options
from tests.perf.report import Figure, Report

STREAMS = 4
STREAM_TOKENS = 600
PROMPT_TOKENS = 4000
BEFORE_SECONDS = 5.0
MOST_RATIO = 3.0


class Gaps(NamedTuple):
    """Seconds."""

    before_p95: float
    during_p95: float
    during_most: float
    first_token: float
    """Of the long prompt."""


def run(options: Options, report: Report) -> None:
    """Each server in turn."""
    with contenders(options, "long-prompt") as servers:
        seen: dict[str, list[Gaps]] = {server.name: [] for server in servers}
        for number in range(options.rounds):
            for server in servers:
                seen[server.name].append(measure(server, number))
    for name, rounds in seen.items():
        note(name, rounds, report)


def measure(server: Contender, number: int) -> Gaps:
    """One pass; what runs is left at its end."""
    target = server.target
    reading = Reading()
    try:
        streams = []
        for place in range(STREAMS):
            messages = [{"role": "user", "content": story(f"beside/{number}/{place}")}]
            streams.append(reading.send(target, target.body(messages, tokens=STREAM_TOKENS)))
        reading.read(count=STREAMS)
        begin = time.perf_counter()
        reading.read(until=begin + BEFORE_SECONDS)
        middle = time.perf_counter()
        messages = [{"role": "user", "content": notes(PROMPT_TOKENS, f"{number}") + " Name the archive."}]
        long = reading.send(target, target.body(messages, tokens=8))
        reading.read(count=STREAMS + 1)
        end = long.times[0]
    finally:
        reading.close()
    before, during = gaps(streams, begin=begin, end=middle), gaps(streams, begin=middle, end=end)
    return Gaps(percentile(before, 95), percentile(during, 95), max(during), long.first)


def note(name: str, rounds: list[Gaps], report: Report) -> None:
    """Keep the medians."""
    report.note_details(f"long-prompt/{name}", [seen._asdict() for seen in rounds])
    ratio = statistics.median(seen.during_p95 / seen.before_p95 for seen in rounds)
    title = f"{STREAMS} streams while {PROMPT_TOKENS:,} tokens are read, {name}"
    figures = {
        "ratio": Figure(
            title=f"{title}, gap p95 / without",
            value=ratio,
            at_most=MOST_RATIO if name == OURS else None,
        ),
        "before": Figure(
            title=f"{title}, gap p95 without", value=statistics.median(s.before_p95 for s in rounds) * 1000, unit="ms"
        ),
        "most": Figure(
            title=f"{title}, longest gap", value=statistics.median(s.during_most for s in rounds) * 1000, unit="ms"
        ),
        "first": Figure(
            title=f"{title}, its first token", value=statistics.median(s.first_token for s in rounds), unit="s"
        ),
    }
    for key, figure in figures.items():
        report.note(f"long-prompt/{name}/{key}", figure)
