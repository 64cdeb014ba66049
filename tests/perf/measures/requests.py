"""Single requests to the default model: a start, one token, and the second turn of a long conversation."""

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
MOST_READY_SECONDS = 4.0


def run(options: Options, report: Report) -> None:
    """All servers in turn."""
    with ours(options, "requests"):
        pass  # what is made once is made: a warm start is measured
    with contenders(options, "requests") as servers:
        for server in servers:
            most = MOST_READY_SECONDS if server.name == OURS else None
            title = f"default model, {server.name}, start to first answer"
            report.note(
                f"requests/{server.name}/ready",
                Figure(title=title, value=server.ready_seconds, unit="s", at_most=most),
            )
        for name, values in (
            ("one token", {server.name: one_token_seconds(server, options.rounds) for server in servers}),
            ("second turn's first token", second_turns(servers, options.rounds)),
        ):
            note(name, values, report)


def one_token_seconds(server: Contender, rounds: int) -> list[float]:
    """The median of each round; all requests differ."""
    return [
        statistics.median(
            one_token(server.target, f"Say yes, number {number}/{place}.") for place in range(ONE_TOKEN_REQUESTS)
        )
        for number in range(rounds)
    ]


def second_turns(servers: list[Contender], rounds: int) -> dict[str, list[float]]:
    """Seconds to the first token of turn 2, the history sent again."""
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


def note(name: str, values: dict[str, list[float]], report: Report) -> None:
    """Keep the medians, and ours over each other's."""
    key = name.replace(" ", "-").replace("'", "")
    report.note_details(f"requests/{key}", values)
    for server, seconds in values.items():
        title = f"default model, {server}, {name}"
        figure = Figure(title=title, value=statistics.median(seconds) * 1000, unit="ms")
        report.note(f"requests/{server}/{key}", figure)
        if server != OURS:
            ratio = statistics.median(a / b for a, b in zip(values[OURS], seconds, strict=True))
            figure = Figure(
                title=f"default model, {OURS} / {server}, {name}", value=ratio, at_most=1.0 if server == PEER else None
            )
            report.note(f"requests/{server}/{key}-ratio", figure)
