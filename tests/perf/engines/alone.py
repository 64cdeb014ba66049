"""The project's engine without a server: requests are submitted, chunks are counted."""

import threading
from collections import Counter
from pathlib import Path

from inference import Chunk, GenerationRequest, MlxOptions, ModelEntry, Sampling, open_model, verify_loadable

from .child import TEMPERATURE, TOP_P, Meter, Rates, SamplingKind, Work, serve


class EngineAlone:
    """The engine, driven as a worker drives it, without speculation. No two sequences share a prefix, as in the bare
    generator.
    """

    def __init__(self, directory: Path, libraries: Path) -> None:
        facts = verify_loadable(directory)
        entry = ModelEntry(
            name="alone",
            source="",
            digest="",
            context_length=facts.context_length,
            vocab_size=facts.vocab_size,
            temperature=1.0,
            top_p=1.0,
            size_bytes=facts.size_bytes,
            weights=facts.weights,
            added_at="",
            path=directory,
        )
        options = MlxOptions(blas_cache=libraries, speculation=None)
        self.engine, self.tokenizer = open_model(entry, sink=self._sink, options=options)
        self.engine.start()
        self._meter = Meter(0)
        self._done = threading.Event()
        self._left = self._runs = 0
        self._error = ""

    def run(self, work: Work) -> Rates:
        """Generate all sequences."""
        self._runs += 1
        prompts = [self.tokenizer.render([{"role": "user", "content": text}]) for text in work.texts]
        self._left = len(prompts)
        self._done.clear()
        self._meter = Meter(len(prompts))
        for place, prompt in enumerate(prompts):
            name = f"{self._runs}-{place}"
            sampling = sampling_of(work.sampling, place)
            self.engine.submit(
                GenerationRequest(id=name, prompt=prompt, max_tokens=work.tokens, sampling=sampling, cache_scope=name)
            )
        self._done.wait()
        if self._error:
            raise RuntimeError(self._error)
        return self._meter.rates()

    def _sink(self, chunks: list[Chunk]) -> None:
        tokens: Counter[str] = Counter()
        ended = 0
        for chunk in chunks:
            if chunk.tokens:
                tokens[chunk.request_id] += len(chunk.tokens)
            ended += chunk.finish is not None
            self._error = self._error or chunk.error
        self._meter.note(tokens, ended=bool(ended))
        self._left -= ended
        if self._left == 0:
            self._done.set()


def sampling_of(kind: SamplingKind, place: int) -> Sampling:
    """The sampling of the sequence at this place."""
    if kind == "greedy":
        return Sampling(temperature=0.0)
    return Sampling(temperature=TEMPERATURE + (0.001 * place if kind == "own" else 0.0), top_p=TOP_P)


def main(model_path: str, libraries: str) -> None:
    """Serve standard input until it ends."""
    alone = EngineAlone(Path(model_path), Path(libraries))
    try:
        serve(alone.run)
    finally:
        alone.engine.close()
