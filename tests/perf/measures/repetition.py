"""Output that repeats the prompt: a JSON document edited, a file quoted; and prose, which repeats nothing.

`--against NAME=VALUE` starts a second server with that setting, such as one that speculates: tokens a second of the
second over the first, and whether greedy texts are the same. Without it the first one's speed is all that is measured.
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
class Passes:
    """One server's answers to one kind of request."""

    rates: list[float] = field(default_factory=list)
    """Tokens a second from the first delta to the last."""
    texts: list[str] = field(default_factory=list)


def prompt(kind: str, number: int) -> str:
    """The request of a round."""
    if kind == "prose":
        return story(f"prose/{number}")
    if kind == "file quoted":
        return f"Repeat this file word for word, in one block of code:\n```python\n# version {number}{_FILE}```"
    document = {
        "version": number,
        "places": [
            {"id": place, "name": f"{name} harbor", "open": place % 2 == 0, "visitors": 100 * place + number}
            for place, name in enumerate(_NAMES)
        ],
    }
    return (
        f"Repeat this JSON document word for word, in one block of code, but with version {number + 1}:\n"
        f"```json\n{json.dumps(document, indent=2)}\n```"
    )


def run(options: Options, report: Report) -> None:
    """One stream at a time, the servers in turn."""
    seen: dict[str, dict[str, Passes]] = {}
    with ExitStack() as stack:
        servers = {"without": stack.enter_context(ours(options, "repetition"))}
        if options.against:
            servers["with"] = stack.enter_context(ours(options, "repetition-with", **options.against))
        for kind in TOKENS:
            seen[kind] = {name: Passes() for name in servers}
            for number in range(options.rounds):
                for name, server in servers.items():
                    answer(server, kind, number, seen[kind][name])
    for kind, passes in seen.items():
        note(kind, passes, options, report)


def answer(server: Contender, kind: str, number: int, passes: Passes) -> None:
    """Ask one server once."""
    target = server.target
    messages = [{"role": "user", "content": prompt(kind, number)}]
    (stream,) = run_streams(target, [target.body(messages, tokens=TOKENS[kind])])
    passes.rates.append((stream.output_tokens - 1) / (stream.times[-1] - stream.times[0]))
    passes.texts.append(stream.text)


def note(kind: str, passes: Mapping[str, Passes], options: Options, report: Report) -> None:
    """Keep the medians, and the ratio where there are two."""
    key = f"repetition/{kind.replace(' ', '-').lower()}"
    report.note_details(key, {"settings": options.against, **{name: of.rates for name, of in passes.items()}})
    for name, of in passes.items():
        title = f"one stream, {kind}, {name} speculation"
        figure = Figure(title=title, value=statistics.median(of.rates), unit="tokens a second")
        report.note(f"{key}/{name}", figure)
    if "with" not in passes:
        return
    ratio = statistics.median(a / b for a, b in zip(passes["with"].rates, passes["without"].rates, strict=True))
    least = PROSE_RATIO if kind == "prose" else REPETITIVE_RATIO
    report.note(f"{key}/ratio", Figure(title=f"one stream, {kind}, with / without", value=ratio, at_least=least))
    same = sum(a == b for a, b in zip(passes["with"].texts, passes["without"].texts, strict=True))
    share = same / len(passes["with"].texts)
    title = f"one stream, {kind}, texts that are the same with and without"
    report.note(f"{key}/same", Figure(title=title, value=share, at_least=1.0))
