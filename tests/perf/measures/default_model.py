"""The default model under load: tokens a second and first tokens of all servers, and of a bare generator.

At each number of streams all requests are sent at once, each with a prompt of its own of about 40 tokens; the same for
all servers. Tokens a second are output tokens over the time from the first send to the last end, prompts included.
"""

import os
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from tests.perf.engines.child import Child, Rates, Work
from tests.perf.load.contenders import OURS, Contender, contenders, default_model
from tests.perf.load.disturbance import undisturbed
from tests.perf.load.processes import usage_of
from tests.perf.load.prompts import story
from tests.perf.load.rates import percentile, tokens_per_second
from tests.perf.load.streams import Stream, run_streams
from tests.perf.options import Options, data_dir
from tests.perf.report import Figure, Report

from .tiny import counted

LEVELS = 1, 4, 8, 16, 32
TOKENS = 64
PEER = "mlx_lm.server"
LEAST_RATIO = 1.05
MOST_MEMORY_MB = 1400


@dataclass(slots=True)
class Passes:
    """What one of them did at one number of streams, a value for each round."""

    tokens_per_second: list[float] = field(default_factory=list)
    first_p50: list[float] = field(default_factory=list)
    first_p95: list[float] = field(default_factory=list)
    cores_of_others: list[float] = field(default_factory=list)


def run(options: Options, report: Report) -> None:
    """All levels, all servers in turn."""
    bare = Child("bare", default_model().path, data_dir() / "libraries", environment=os.environ)
    try:
        with contenders(options, "default-model") as servers:
            bare.run(Work(texts=(story("warm"),), tokens=4))
            for level in options.levels(*LEVELS):
                passes = measure(bare, servers, level, options)
                note(passes, level, report)
                for server in servers:
                    note_memory(server, level, report)
    finally:
        bare.close()


def measure(bare: Child, servers: list[Contender], level: int, options: Options) -> dict[str, Passes]:
    """Let all generate in turn, each round begun by another."""
    passes = {name: Passes() for name in ("bare", *(server.name for server in servers))}
    for number in range(options.rounds):
        first = number % (1 + len(servers))
        for server in [None, *servers][first:] + [None, *servers][:first]:
            if server is None:
                rates, cores = undisturbed(partial(generate, bare, number, level), tries=options.tries)
                passes["bare"].tokens_per_second.append(rates.tokens_per_second)
                passes["bare"].cores_of_others.append(cores)
            else:
                load(server, number, level, passes[server.name], tries=options.tries)
    return passes


def prompts(number: int, level: int, attempt: int) -> tuple[str, ...]:
    """Those of a round, the same for all."""
    return tuple(story(f"{number}/{level}/{attempt}/{place}") for place in range(level))


def generate(bare: Child, number: int, level: int, attempt: int) -> Rates:
    """Let the bare generator do it."""
    return bare.run(Work(texts=prompts(number, level, attempt), tokens=TOKENS))


def send(server: Contender, number: int, level: int, attempt: int) -> list[Stream]:
    """Let a server do it."""
    target = server.target
    return run_streams(
        target,
        [target.body([{"role": "user", "content": text}], tokens=TOKENS) for text in prompts(number, level, attempt)],
    )


def load(server: Contender, number: int, level: int, passes: Passes, *, tries: int) -> None:
    """Send all at once to one server."""
    streams, cores = undisturbed(partial(send, server, number, level), tries=tries)
    firsts = [stream.first for stream in streams]
    passes.tokens_per_second.append(tokens_per_second(streams))
    passes.first_p50.append(percentile(firsts, 50))
    passes.first_p95.append(percentile(firsts, 95))
    passes.cores_of_others.append(cores)


def note(passes: Mapping[str, Passes], level: int, report: Report) -> None:
    """Keep the medians, and ours over each other's."""
    report.note_details(
        f"default/{level}",
        {name: {key: getattr(of, key) for key in Passes.__dataclass_fields__} for name, of in passes.items()},
    )
    mine = passes[OURS]
    for name, of in passes.items():
        title = f"default model, {counted(level)}"
        key = f"default/{name}/{level}"
        rate = statistics.median(of.tokens_per_second)
        report.note(f"{key}/rate", Figure(title=f"{title}, {name}", value=rate, unit="tokens a second"))
        if name != OURS:
            ratio = statistics.median(a / b for a, b in zip(mine.tokens_per_second, of.tokens_per_second, strict=True))
            least = LEAST_RATIO if name == PEER else None
            title_of_ratio = f"{title}, {OURS} / {name}, tokens a second"
            report.note(f"{key}/ratio", Figure(title=title_of_ratio, value=ratio, at_least=least))
        for percent in (50, 95) if of.first_p50 else ():
            values = getattr(of, f"first_p{percent}")
            figure = Figure(title=f"{title}, {name}, first token p{percent}", value=statistics.median(values), unit="s")
            report.note(f"{key}/first-p{percent}", figure)
            if name == OURS:
                continue
            pairs = zip(getattr(mine, f"first_p{percent}"), values, strict=True)
            figure = Figure(
                title=f"{title}, {OURS} / {name}, first token p{percent}",
                value=statistics.median(a / b for a, b in pairs),
                at_most=1.0 if name == PEER else None,
            )
            report.note(f"{key}/first-p{percent}-ratio", figure)


def note_memory(server: Contender, level: int, report: Report) -> None:
    """Keep what the processes of a server hold after this level."""
    megabytes = usage_of(server.pid).memory_bytes / (1 << 20)
    is_held = server.name == OURS and level == max(LEVELS)
    title = f"default model, {server.name}, memory after {counted(level)}"
    most = MOST_MEMORY_MB if is_held else None
    report.note(f"default/{server.name}/{level}/memory", Figure(title=title, value=megabytes, unit="MiB", at_most=most))
