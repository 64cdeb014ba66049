"""Output that repeats the prompt (an edited JSON document, a quoted file), and prose, which repeats nothing.

`--against NAME=VALUE` starts a second server with this setting, such as one with speculation. The ratio of its tokens a
second to those of the first server is measured, and whether the greedy texts are the same. Without the option only the
first server is measured.
"""

import json
import statistics
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from tests.perf.load.contenders import Contender, ours
from tests.perf.load.prompts import story
from tests.perf.load.streams import run_streams
from tests.perf.options import Options
from tests.perf.report import Figure, Report

REPETITIVE_RATIO, PROSE_RATIO = 1.5, 0.98
TOKENS = {"JSON edited": 160, "file quoted": 160, "prose": 96}
_NAMES = "amber", "brave", "calm", "distant", "eager", "frozen"
_FILE = '''
def load_settings(path):
    """Read settings from a file; an empty file gives none."""
    settings = {}
    with open(path) as file:
        for number, line in enumerate(file, start=1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            name, found, value = line.partition("=")
            if not found:
                raise ValueError(f"line {number} of {path} has no value")
            settings[name.strip()] = value.strip()
    return settings
'''


@dataclass(slots=True)
class Results:
    """The results of one server for one kind of request."""

    rates: list[float] = field(default_factory=list)
    """Tokens a second from the first delta to the last."""
    texts: list[str] = field(default_factory=list)


def prompt(kind: str, number: int) -> str:
    """The prompt of a round."""
    if kind == "prose":
        return story(f"prose/{number}")
    if kind == "file quoted":
        return f"Repeat this file word for word, in one block of code:\n```python\n# version {number}{_FILE}```"
    document = {
        "version": number,
        "places": [
            {"id": index, "name": f"{name} harbor", "open": index % 2 == 0, "visitors": 100 * index + number}
            for index, name in enumerate(_NAMES)
        ],
    }
    return (
        f"Repeat this JSON document word for word, in one block of code, but with version {number + 1}:\n"
        f"```json\n{json.dumps(document, indent=2)}\n```"
    )


def run(options: Options, report: Report) -> None:
    """Measure one stream at a time, the servers in turn."""
    results: dict[str, dict[str, Results]] = {}
    with ExitStack() as stack:
        servers = {"without": stack.enter_context(ours(options, "repetition"))}
        if options.against:
            servers["with"] = stack.enter_context(ours(options, "repetition-with", **options.against))
        for kind in TOKENS:
            results[kind] = {name: Results() for name in servers}
            for number in range(options.rounds):
                for name, server in servers.items():
                    answer(server, kind, number, results[kind][name])
    for kind, by_server in results.items():
        add_figures(kind, by_server, options, report)


def answer(server: Contender, kind: str, number: int, results: Results) -> None:
    """Measure one server once."""
    target = server.target
    messages = [{"role": "user", "content": prompt(kind, number)}]
    (stream,) = run_streams(target, [target.body(messages, tokens=TOKENS[kind])])
    results.rates.append((stream.output_tokens - 1) / (stream.times[-1] - stream.times[0]))
    results.texts.append(stream.text)


def add_figures(kind: str, results: Mapping[str, Results], options: Options, report: Report) -> None:
    """Store the medians, and the ratio if there are two servers."""
    key = f"repetition/{kind.replace(' ', '-').lower()}"
    report.add_details(key, {"settings": options.against, **{name: own.rates for name, own in results.items()}})
    for name, own in results.items():
        title = f"one stream, {kind}, {name} speculation"
        figure = Figure(title=title, value=statistics.median(own.rates), unit="tokens a second")
        report.add(f"{key}/{name}", figure)
    if "with" not in results:
        return
    ratio = statistics.median(a / b for a, b in zip(results["with"].rates, results["without"].rates, strict=True))
    at_least = PROSE_RATIO if kind == "prose" else REPETITIVE_RATIO
    report.add(f"{key}/ratio", Figure(title=f"one stream, {kind}, with / without", value=ratio, at_least=at_least))
    same = sum(a == b for a, b in zip(results["with"].texts, results["without"].texts, strict=True))
    share = same / len(results["with"].texts)
    title = f"one stream, {kind}, texts that are the same with and without"
    report.add(f"{key}/same", Figure(title=title, value=share, at_least=1.0))
