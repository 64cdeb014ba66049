"""The speed of the tiny model, compared with a bare generator.

Steps a second are the tokens a second of each stream while all streams run. The bare generator, the engine, the
embedded server and a team take turns in one run, with the same prompts.
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
MIN_RATIO = 0.9
MAX_MS_OUTSIDE = {1: 0.4, 32: 1.5}
SETTINGS = {"RESPONSES_ENGINE": "mlx", "RESPONSES_DEFAULT_MODEL": NAME, "RESPONSES_SPECULATION": "off"}
"""The model repeats itself so much that guesses would hide what a step costs."""


class Runner(Protocol):
    """One of the compared alternatives."""

    def run(self, work: Work) -> Rates:
        """Generate all sequences and return the rates."""


@dataclass(frozen=True, slots=True)
class Served:
    """A server of the tiny model."""

    server: LiveServer

    def run(self, work: Work) -> Rates:
        """Generate with requests to the server."""
        streams = run_streams(
            target_of(self.server),
            [
                {"input": text, "stream": True, "max_output_tokens": work.tokens, **sampling_of(work.sampling, index)}
                for index, text in enumerate(work.texts)
            ],
        )
        return Rates(
            steps_per_second=steps_per_second(streams, characters_per_token=CHARACTERS_PER_TOKEN),
            tokens_per_second=tokens_per_second(streams),
        )


def sampling_of(kind: SamplingKind, index: int) -> dict[str, float]:
    """The sampling parameters of a request."""
    if kind == "greedy":
        return {"temperature": 0}
    return {"temperature": TEMPERATURE + (0.001 * index if kind == "own" else 0.0), "top_p": TOP_P}


def run(options: Options, report: Report) -> None:
    """Compare all alternatives at each number of streams."""
    models = tiny_models(options)
    with runners(options, models) as alternatives:
        for level in options.levels(*LEVELS):
            compare(alternatives, level, options, report)


def tiny_models(options: Options) -> Path:
    """A data directory with the tiny model."""
    models = options.directory / "models-of-tiny"
    if not models.exists():
        install_tiny_model(Registry(models), options.directory)
    return models


def tokens_of(options: Options, level: int) -> int:
    """The length of answers, for a pass of one or two seconds."""
    return (SHORT_TOKENS if options.is_short else TOKENS)[level]


@contextmanager
def runners(options: Options, models: Path) -> Iterator[dict[str, Runner]]:
    """All alternatives, the bare generator first."""
    settings = {**SETTINGS, **options.settings}
    with ExitStack() as stack:
        alternatives: dict[str, Runner] = {}
        for name in ("bare", "engine"):
            alternatives[name] = stack.enter_context(child(name, models))
        server = stack.enter_context(embedded_server(options.directory / "tiny", settings, models=models))
        alternatives["embedded"] = Served(server)
        team = stack.enter_context(small_team(options.directory / "tiny-team", settings, models=models))
        if team is None:
            print("tiny model, team: not measured, it needs PostgreSQL and Redis")
        else:
            alternatives["team"] = Served(team)
        yield alternatives


@contextmanager
def child(name: str, models: Path, environment: Mapping[str, str] | None = None) -> Iterator[Child]:
    """The bare generator, or the engine without a server, in a separate process."""
    module = {"bare": "bare", "engine": "alone"}[name]
    path = Registry(models).get_model(NAME).path
    started = Child(module, path, models / "libraries", environment={**os.environ, **(environment or {})})
    try:
        yield started
    finally:
        started.close()


def compare(alternatives: Mapping[str, Runner], level: int, options: Options, report: Report) -> None:
    """Let all alternatives generate in turn, and store their ratios to the bare generator."""
    tokens = tokens_of(options, level)
    steps: dict[str, list[float]] = {name: [] for name in alternatives}
    others: dict[str, list[float]] = {name: [] for name in alternatives}
    for runner in alternatives.values():
        runner.run(work(f"warm/{level}", level, tokens // 4))
    for number in range(options.rounds):
        for name, runner in alternatives.items():
            rates, cores = undisturbed(
                partial(one_pass, runner, f"{number}/{level}", level, tokens), tries=options.tries
            )
            steps[name].append(rates.steps_per_second)
            others[name].append(cores)
    report.add_details(f"tiny/{level}", {"steps_per_second": steps, "cores_of_others": others})
    medians = {name: statistics.median(values) for name, values in steps.items()}
    for name, value in medians.items():
        title = f"tiny model, {stream_count(level)}, {name}"
        key = f"tiny/{name}/{level}"
        report.add(f"{key}/steps", Figure(title=title, value=value, unit="steps a second"))
        if name == "bare":
            continue
        is_server = name != "engine"
        ratio = statistics.median(own / bare for own, bare in zip(steps[name], steps["bare"], strict=True))
        report.add(
            f"{key}/ratio",
            Figure(title=f"{title} / bare", value=ratio, at_least=MIN_RATIO if is_server else None),
        )
        outside = 1000 / value - 1000 / medians["bare"]
        report.add(
            f"{key}/outside",
            Figure(
                title=f"{title}, time outside MLX per step",
                value=outside,
                unit="ms",
                at_most=MAX_MS_OUTSIDE.get(level) if is_server else None,
            ),
        )


def one_pass(runner: Runner, seed: str, level: int, tokens: int, attempt: int) -> Rates:
    """Generate once."""
    return runner.run(work(f"{seed}/{attempt}", level, tokens))


def work(seed: str, level: int, tokens: int, sampling: SamplingKind = "greedy") -> Work:
    """Sequences with different prompts, which depend only on the seed."""
    texts = tuple(words(PROMPT_WORDS, seed=f"{seed}/{index}").strip() for index in range(level))
    return Work(texts=texts, tokens=tokens, sampling=sampling)


def stream_count(level: int) -> str:
    """The number of streams as text."""
    return f"{level} stream{'' if level == 1 else 's'}"
