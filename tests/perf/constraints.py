"""Eight constrained sequences compared with eight unconstrained ones on the bare engine: tokens a second, in one run.

Passes alternate between both kinds. Each pair has its own prompts, greedy, without a prefix cache. Both kinds generate
almost the same number of tokens, as the stories and the schema have no natural end before.
"""

import json
import statistics
import threading
import time
from pathlib import Path

from inference import (
    Chunk,
    Constraint,
    GenerationRequest,
    MlxOptions,
    ModelEntry,
    Registry,
    Sampling,
    open_model,
    pull_default,
)

from .options import Options, data_dir
from .report import Figure, Report

STREAMS, NEW_TOKENS = 8, 96
LIMIT, PASSES = 0.9, 4

RECORD = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 20},
        "tags": {"type": "array", "items": {"enum": ["town", "sea", "snow", "work"]}, "minItems": 2},
        "people": {
            "type": "array",
            "minItems": 8,
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "minLength": 12},
                    "age": {"type": "integer", "minimum": 0, "maximum": 130},
                    "home": {"anyOf": [{"$ref": "#/$defs/place"}, {"type": "null"}]},
                },
                "required": ["name", "age", "home"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["title", "tags", "people"],
    "additionalProperties": False,
    "$defs": {
        "place": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "number": {"type": "integer"}},
            "required": ["street", "number"],
            "additionalProperties": False,
        }
    },
}


def prompts(number: int) -> list[str]:
    """The prompts of a pass, about 40 tokens each."""
    things = ("lighthouse", "bakery", "railway", "garden", "library", "harbour", "orchestra", "glacier")
    return [
        f"Write a long story, with many details, about a {thing} that changed the life of a small town in the year "
        f"{1800 + 10 * number + index}. Begin with the weather on the first morning."
        for index, thing in enumerate(things[:STREAMS])
    ]


class EngineRun:
    """The engine, used as a worker uses it."""

    def __init__(self, entry: ModelEntry, libraries: Path) -> None:
        options = MlxOptions(batch_size=STREAMS, prompt_cache_bytes=0, blas_cache=libraries)
        self.engine, self.tokenizer = open_model(entry, sink=self._sink, options=options)
        self.engine.start()
        self._done = threading.Event()
        self._tokens = self._running = self._runs = 0

    def _sink(self, chunks: list[Chunk]) -> None:
        for chunk in chunks:
            self._tokens += len(chunk.tokens)
            self._running -= chunk.finish is not None
        if self._running == 0:
            self._done.set()

    def rate(self, texts: list[str], constraint: Constraint | None) -> float:
        """Tokens a second of all these prompts."""
        self._runs += 1
        self._tokens, self._running = 0, len(texts)
        self._done.clear()
        started_at = time.perf_counter()
        for index, text in enumerate(texts):
            self.engine.submit(
                GenerationRequest(
                    id=f"{self._runs}-{index}",
                    prompt=self.tokenizer.render([{"role": "user", "content": text}]),
                    max_tokens=NEW_TOKENS,
                    sampling=Sampling(temperature=0.0),
                    constraint=constraint,
                )
            )
        assert self._done.wait(600)
        return self._tokens / (time.perf_counter() - started_at)


def run(options: Options, report: Report) -> None:
    """Measure with the default model on the bare engine."""
    entry, libraries = pull_default(Registry(data_dir())), data_dir() / "libraries"
    constraint = Constraint(kind="json_schema", text=json.dumps(RECORD))
    engine = EngineRun(entry, libraries)
    try:
        engine.rate(prompts(-1), None)
        engine.rate(prompts(-1), constraint)
        pairs = [
            (engine.rate(prompts(number), None), engine.rate(prompts(number), constraint)) for number in range(PASSES)
        ]
    finally:
        engine.engine.close()
    ratio = statistics.median(constrained / free for free, constrained in pairs)
    report.add_details(
        "constraints", {"free": [free for free, _ in pairs], "constrained": [constrained for _, constrained in pairs]}
    )
    title = f"{STREAMS} constrained sequences / free ones, tokens a second"
    report.add("constraints/ratio", Figure(title=title, value=ratio, at_least=LIMIT))
