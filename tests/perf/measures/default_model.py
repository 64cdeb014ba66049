"""The default model under load: tokens a second and first tokens of all servers, and of a bare generator.

At each number of streams all requests are sent concurrently, with different prompts of about 40 tokens, the same for
all servers. Tokens a second are output tokens divided by the time from the first request to the last end, including the
prompts.
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

from .tiny import stream_count

LEVELS = 1, 4, 8, 16, 32
TOKENS = 64
PEER = "mlx_lm.server"
MIN_RATIO = 1.05
MAX_MEMORY_MB = 1400


@dataclass(slots=True)
class Results:
    """The results of one server at one number of streams, one value per round."""

    tokens_per_second: list[float] = field(default_factory=list)
    first_p50: list[float] = field(default_factory=list)
    first_p95: list[float] = field(default_factory=list)
    cores_of_others: list[float] = field(default_factory=list)


def run(options: Options, report: Report) -> None:
    """Measure all servers in turn at all numbers of streams."""
    bare = Child("bare", default_model().path, data_dir() / "libraries", environment=os.environ)
    try:
        with contenders(options, "default-model") as servers:
            bare.run(Work(texts=(story("warm"),), tokens=4))
            for level in options.levels(*LEVELS):
                results = measure(bare, servers, level, options)
                add_figures(results, level, report)
                for server in servers:
                    add_memory(server, level, report)
    finally:
        bare.close()


def measure(bare: Child, servers: list[Contender], level: int, options: Options) -> dict[str, Results]:
    """Let all generate in turn, in another order each round."""
    results = {name: Results() for name in ("bare", *(server.name for server in servers))}
    for number in range(options.rounds):
        first = number % (1 + len(servers))
        for server in [None, *servers][first:] + [None, *servers][:first]:
            if server is None:
                rates, cores = undisturbed(partial(generate, bare, number, level), tries=options.tries)
                results["bare"].tokens_per_second.append(rates.tokens_per_second)
                results["bare"].cores_of_others.append(cores)
            else:
                load(server, number, level, results[server.name], tries=options.tries)
    return results


def prompts(number: int, level: int, attempt: int) -> tuple[str, ...]:
    """The prompts of a round, the same for all servers."""
    return tuple(story(f"{number}/{level}/{attempt}/{index}") for index in range(level))


def generate(bare: Child, number: int, level: int, attempt: int) -> Rates:
    """Generate with the bare generator."""
    return bare.run(Work(texts=prompts(number, level, attempt), tokens=TOKENS))


def send(server: Contender, number: int, level: int, attempt: int) -> list[Stream]:
    """Generate with a server."""
    target = server.target
    return run_streams(
        target,
        [target.body([{"role": "user", "content": text}], tokens=TOKENS) for text in prompts(number, level, attempt)],
    )


def load(server: Contender, number: int, level: int, results: Results, *, tries: int) -> None:
    """Send all requests concurrently to one server, and add the results."""
    streams, cores = undisturbed(partial(send, server, number, level), tries=tries)
    firsts = [stream.first for stream in streams]
    results.tokens_per_second.append(tokens_per_second(streams))
    results.first_p50.append(percentile(firsts, 50))
    results.first_p95.append(percentile(firsts, 95))
    results.cores_of_others.append(cores)


def add_figures(results: Mapping[str, Results], level: int, report: Report) -> None:
    """Store the medians, and the ratios of this project's server to the others."""
    report.add_details(
        f"default/{level}",
        {name: {key: getattr(of, key) for key in Results.__dataclass_fields__} for name, of in results.items()},
    )
    own = results[OURS]
    for name, of in results.items():
        title = f"default model, {stream_count(level)}"
        key = f"default/{name}/{level}"
        rate = statistics.median(of.tokens_per_second)
        report.add(f"{key}/rate", Figure(title=f"{title}, {name}", value=rate, unit="tokens a second"))
        if name != OURS:
            ratio = statistics.median(a / b for a, b in zip(own.tokens_per_second, of.tokens_per_second, strict=True))
            least = MIN_RATIO if name == PEER else None
            title_of_ratio = f"{title}, {OURS} / {name}, tokens a second"
            report.add(f"{key}/ratio", Figure(title=title_of_ratio, value=ratio, at_least=least))
        for percent in (50, 95) if of.first_p50 else ():
            values = getattr(of, f"first_p{percent}")
            figure = Figure(title=f"{title}, {name}, first token p{percent}", value=statistics.median(values), unit="s")
            report.add(f"{key}/first-p{percent}", figure)
            if name == OURS:
                continue
            pairs = zip(getattr(own, f"first_p{percent}"), values, strict=True)
            figure = Figure(
                title=f"{title}, {OURS} / {name}, first token p{percent}",
                value=statistics.median(a / b for a, b in pairs),
                at_most=1.0 if name == PEER else None,
            )
            report.add(f"{key}/first-p{percent}-ratio", figure)


def add_memory(server: Contender, level: int, report: Report) -> None:
    """Store the memory of a server's processes after this level."""
    megabytes = usage_of(server.pid).memory_bytes / (1 << 20)
    has_limit = server.name == OURS and level == max(LEVELS)
    title = f"default model, {server.name}, memory after {stream_count(level)}"
    at_most = MAX_MEMORY_MB if has_limit else None
    report.add(
        f"default/{server.name}/{level}/memory", Figure(title=title, value=megabytes, unit="MiB", at_most=at_most)
    )
