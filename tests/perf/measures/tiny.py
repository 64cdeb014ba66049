"""The tiny model: how much of a bare generator's speed is left.

Steps a second are tokens a second of each stream while all run. Bare generator, engine alone, embedded server and team
take turns in one run; each gets the same prompts.
"""

import os
import statistics
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from inference import Registry
from tests.live.server import LiveServer
from tests.perf.engines.child import TEMPERATURE, TOP_P, Child, Rates, SamplingKind, Work
from tests.perf.engines.tiny_model import CHARACTERS_PER_TOKEN, NAME, install_tiny_model, words
from tests.perf.load.disturbance import undisturbed
from tests.perf.load.rates import steps_per_second, tokens_per_second
from tests.perf.load.servers import embedded_server, small_team, target_of
from tests.perf.load.streams import run_streams
from tests.perf.options import Options
from tests.perf.report import Figure, Report

LEVELS = 1, 8, 32
TOKENS = {1: 1000, 8: 800, 32: 500}
SHORT_TOKENS = {1: 400, 8: 300, 32: 250}
PROMPT_WORDS = 20
LEAST_RATIO = 0.9
MOST_MS_OUTSIDE = {1: 0.4, 32: 1.5}
SETTINGS = {"RESPONSES_ENGINE": "mlx", "RESPONSES_DEFAULT_MODEL": NAME}


class Runner(Protocol):
    """A thing that generates."""

    def run(self, work: Work) -> Rates:
        """Generate, and say how quickly it went."""


@dataclass(frozen=True, slots=True)
class Served:
    """A server of the tiny model."""

    server: LiveServer

    def run(self, work: Work) -> Rates:
        """Generate through it."""
        streams = run_streams(
            target_of(self.server),
            [
                {"input": text, "stream": True, "max_output_tokens": work.tokens, **sampling_of(work.sampling, place)}
                for place, text in enumerate(work.texts)
            ],
        )
        return Rates(
            steps_per_second=steps_per_second(streams, characters_per_token=CHARACTERS_PER_TOKEN),
            tokens_per_second=tokens_per_second(streams),
        )


def sampling_of(kind: SamplingKind, place: int) -> dict[str, float]:
    """The parameters of a request."""
    if kind == "greedy":
        return {"temperature": 0}
    return {"temperature": TEMPERATURE + (0.001 * place if kind == "own" else 0.0), "top_p": TOP_P}


def run(options: Options, report: Report) -> None:
    """Compare all at each number of streams."""
    models = tiny_models(options)
    with runners(options, models) as things:
        for level in options.levels(*LEVELS):
            compare(things, level, options, report)


def tiny_models(options: Options) -> Path:
    """A data directory with the tiny model."""
    models = options.work / "models-of-tiny"
    if not models.exists():
        install_tiny_model(Registry(models), options.work)
    return models


def tokens_of(options: Options, level: int) -> int:
    """How long the answers are, for a pass of a second or two."""
    return (SHORT_TOKENS if options.is_short else TOKENS)[level]


@contextmanager
def runners(options: Options, models: Path) -> Iterator[dict[str, Runner]]:
    """All that are compared, the bare one first."""
    settings = {**SETTINGS, **options.settings}
    with ExitStack() as stack:
        things: dict[str, Runner] = {}
        for name in ("bare", "engine"):
            things[name] = stack.enter_context(child(name, models))
        server = stack.enter_context(embedded_server(options.work / "tiny", settings, models=models))
        things["embedded"] = Served(server)
        team = stack.enter_context(small_team(options.work / "tiny-team", settings, models=models))
        if team is None:
            print("tiny model, team: not measured, it needs PostgreSQL and Redis")
        else:
            things["team"] = Served(team)
        yield things


@contextmanager
def child(name: str, models: Path, environment: Mapping[str, str] | None = None) -> Iterator[Child]:
    """The bare generator, or the engine alone, in a process of its own."""
    module = {"bare": "bare", "engine": "alone"}[name]
    path = Registry(models).get_model(NAME).path
    started = Child(module, path, models / "libraries", environment={**os.environ, **(environment or {})})
    try:
        yield started
    finally:
        started.close()


def compare(things: Mapping[str, Runner], level: int, options: Options, report: Report) -> None:
    """Let all generate in turn, and note what each makes of the bare one's speed."""
    tokens = tokens_of(options, level)
    steps: dict[str, list[float]] = {name: [] for name in things}
    others: dict[str, list[float]] = {name: [] for name in things}
    for thing in things.values():
        thing.run(work(f"warm/{level}", level, tokens // 4))
    for number in range(options.rounds):
        for name, thing in things.items():
            rates, cores = undisturbed(
                partial(one_pass, thing, f"{number}/{level}", level, tokens), tries=options.tries
            )
            steps[name].append(rates.steps_per_second)
            others[name].append(cores)
    report.note_details(f"tiny/{level}", {"steps_per_second": steps, "cores_of_others": others})
    medians = {name: statistics.median(values) for name, values in steps.items()}
    for name, value in medians.items():
        title = f"tiny model, {counted(level)}, {name}"
        key = f"tiny/{name}/{level}"
        report.note(f"{key}/steps", Figure(title=title, value=value, unit="steps a second"))
        if name == "bare":
            continue
        is_server = name != "engine"
        ratio = statistics.median(mine / bare for mine, bare in zip(steps[name], steps["bare"], strict=True))
        report.note(
            f"{key}/ratio",
            Figure(title=f"{title} / bare", value=ratio, at_least=LEAST_RATIO if is_server else None),
        )
        outside = 1000 / value - 1000 / medians["bare"]
        report.note(
            f"{key}/outside",
            Figure(
                title=f"{title}, time outside MLX per step",
                value=outside,
                unit="ms",
                at_most=MOST_MS_OUTSIDE.get(level) if is_server else None,
            ),
        )


def one_pass(thing: Runner, seed: str, level: int, tokens: int, attempt: int) -> Rates:
    """Generate once."""
    return thing.run(work(f"{seed}/{attempt}", level, tokens))


def work(seed: str, level: int, tokens: int, sampling: SamplingKind = "greedy") -> Work:
    """Prompts of their own, the same for the same seed."""
    texts = tuple(words(PROMPT_WORDS, seed=f"{seed}/{place}").strip() for place in range(level))
    return Work(texts=texts, tokens=tokens, sampling=sampling)


def counted(level: int) -> str:
    """So many streams."""
    return f"{level} stream{'' if level == 1 else 's'}"
