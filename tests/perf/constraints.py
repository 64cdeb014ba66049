"""Eight constrained sequences against eight free ones on the bare engine: aggregate tokens a second, in one run.

Passes alternate: free, constrained, …; each has prompts of its own, the same for both, greedy, the prefix cache off.
Both write as many tokens, or nearly so: the stories and the schema leave room for more.
"""

import json
import statistics
import threading
import time
from pathlib import Path

from inference import Chunk, Constraint, GenerationRequest, MlxOptions, ModelEntry, Sampling, open_model

from .throughput import NEW_TOKENS, STREAMS, prompts

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


def report(entry: ModelEntry, libraries: Path) -> bool:
    """Measure, print, and say whether it is good enough."""
    constraint = Constraint(kind="json_schema", text=json.dumps(RECORD))
    run = Run(entry, libraries)
    try:
        run.rate(prompts(-1), None)
        run.rate(prompts(-1), constraint)
        pairs = [(run.rate(prompts(number), None), run.rate(prompts(number), constraint)) for number in range(PASSES)]
    finally:
        run.engine.close()
    ratio = statistics.median(held / free for free, held in pairs)
    good = ratio >= LIMIT
    shown = ", ".join(f"{held:.1f}/{free:.1f}" for free, held in pairs)
    print(
        f"{STREAMS} sequences, tokens a second, constrained/free: {shown}; median ratio {ratio:.3f} (limit {LIMIT:g}): "
        f"{'good' if good else 'MISSED'}"
    )
    return good
