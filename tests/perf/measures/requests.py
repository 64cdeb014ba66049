"""Single requests to the default model: the start, one token, and the second turn of a long conversation."""

import statistics

from tests.perf.load.contenders import OURS, Contender, contenders, one_token, ours
from tests.perf.load.prompts import notes, story
from tests.perf.load.streams import run_streams
from tests.perf.options import Options
from tests.perf.report import Figure, Report

from .default_model import PEER

ONE_TOKEN_REQUESTS = 20
PREFIX_TOKENS = 1400
ANSWER_TOKENS = 16
MAX_READY_SECONDS = 4.0


def run(options: Options, report: Report) -> None:
    """Measure all servers in turn."""
    with ours(options, "requests"):
        pass  # creates the caches: a warm start is measured
    with contenders(options, "requests") as servers:
        for server in servers:
            at_most = MAX_READY_SECONDS if server.name == OURS else None
            title = f"default model, {server.name}, start to first answer"
            report.add(
                f"requests/{server.name}/ready",
                Figure(title=title, value=server.ready_seconds, unit="s", at_most=at_most),
            )
        for name, values in (
            ("one token", {server.name: one_token_seconds(server, options.rounds) for server in servers}),
            ("second turn's first token", second_turns(servers, options.rounds)),
        ):
            add_figures(name, values, report)


def one_token_seconds(server: Contender, rounds: int) -> list[float]:
    """The median of each round, with different requests."""
    return [
        statistics.median(
            one_token(server.target, f"Say yes, number {number}/{index}.") for index in range(ONE_TOKEN_REQUESTS)
        )
        for number in range(rounds)
    ]


def second_turns(servers: list[Contender], rounds: int) -> dict[str, list[float]]:
    """Seconds to the first token of turn 2, which repeats the history."""
    seconds: dict[str, list[float]] = {server.name: [] for server in servers}
    for number in range(rounds):
        for server in servers:
            messages = [
                {"role": "system", "content": notes(PREFIX_TOKENS, f"{number}")},
                {"role": "user", "content": story(f"first/{number}")},
            ]
            (first,) = run_streams(server.target, [server.target.body(messages, tokens=ANSWER_TOKENS)])
            messages += [
                {"role": "assistant", "content": first.text},
                {"role": "user", "content": story(f"second/{number}")},
            ]
            (second,) = run_streams(server.target, [server.target.body(messages, tokens=ANSWER_TOKENS)])
            seconds[server.name].append(second.first)
    return seconds


def add_figures(name: str, values: dict[str, list[float]], report: Report) -> None:
    """Store the medians, and the ratios of this project's server to the others."""
    key = name.replace(" ", "-").replace("'", "")
    report.add_details(f"requests/{key}", values)
    for server, seconds in values.items():
        title = f"default model, {server}, {name}"
        figure = Figure(title=title, value=statistics.median(seconds) * 1000, unit="ms")
        report.add(f"requests/{server}/{key}", figure)
        if server != OURS:
            ratio = statistics.median(a / b for a, b in zip(values[OURS], seconds, strict=True))
            figure = Figure(
                title=f"default model, {OURS} / {server}, {name}", value=ratio, at_most=1.0 if server == PEER else None
            )
            report.add(f"requests/{server}/{key}-ratio", figure)
