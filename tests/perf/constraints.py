"""Eight constrained sequences against eight free ones on the bare engine: aggregate tokens a second, in one run.

Passes alternate: free, constrained, …; each has prompts of its own, the same for both, greedy, the prefix cache off.
Both write as many tokens, or nearly so: the stories and the schema leave room for more.
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
        f"{1800 + 10 * number + place}. Begin with the weather on the first morning."
        for place, thing in enumerate(things[:STREAMS])
    ]


class Run:
    """The engine, driven as a worker drives it."""

    def __init__(self, entry: ModelEntry, libraries: Path) -> None:
        options = MlxOptions(batch_size=STREAMS, prompt_cache_bytes=0, blas_cache=libraries)
        self.engine, self.tokenizer = open_model(entry, sink=self._sink, options=options)
        self.engine.start()
        self._done = threading.Event()
        self._tokens = self._left = self._runs = 0

    def _sink(self, chunks: list[Chunk]) -> None:
        for chunk in chunks:
            self._tokens += len(chunk.tokens)
            self._left -= chunk.finish is not None
        if self._left == 0:
            self._done.set()

    def rate(self, texts: list[str], constraint: Constraint | None) -> float:
        """Tokens a second of these prompts together."""
        self._runs += 1
        self._tokens, self._left = 0, len(texts)
        self._done.clear()
        began = time.perf_counter()
        for place, text in enumerate(texts):
            self.engine.submit(
                GenerationRequest(
                    id=f"{self._runs}-{place}",
                    prompt=self.tokenizer.render([{"role": "user", "content": text}]),
                    max_tokens=NEW_TOKENS,
                    sampling=Sampling(temperature=0.0),
                    constraint=constraint,
                )
            )
        assert self._done.wait(600)
        return self._tokens / (time.perf_counter() - began)


def run(options: Options, report: Report) -> None:
    """Measure with the default model, on the bare engine."""
    entry, libraries = pull_default(Registry(data_dir())), data_dir() / "libraries"
    constraint = Constraint(kind="json_schema", text=json.dumps(RECORD))
    engine = Run(entry, libraries)
    try:
        engine.rate(prompts(-1), None)
        engine.rate(prompts(-1), constraint)
        pairs = [
            (engine.rate(prompts(number), None), engine.rate(prompts(number), constraint)) for number in range(PASSES)
        ]
    finally:
        engine.engine.close()
    ratio = statistics.median(held / free for free, held in pairs)
    report.note_details(
        "constraints", {"free": [free for free, _ in pairs], "constrained": [held for _, held in pairs]}
    )
    title = f"{STREAMS} constrained sequences / free ones, tokens a second"
    report.note("constraints/ratio", Figure(title=title, value=ratio, at_least=LIMIT))
