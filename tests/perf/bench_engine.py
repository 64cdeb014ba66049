"""What the engine costs over a bare BatchGenerator: aggregate tokens a second on the same prompts, in the same run.

    python tests/perf/bench_engine.py MODEL_DIR [--streams 8] [--tokens 64] [--passes 2] [--blas-cache DIR]

Passes alternate between the two, so that what else the machine does falls on both. Prints a line a pass and, last, the
ratio of the medians. Tokens are counted, prefill is included. Only the ratio means something on a busy machine.
"""

import argparse
import statistics
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from inference import GenerationRequest, MlxOptions, ModelEntry, Sampling, open_model, verify_loadable
from inference.engine.blas import preload_openblas
from inference.types import Chunk

TOPICS = (
    "the history of the bicycle", "how bread is baked", "why the sky is blue", "the rules of chess", "a day in Tokyo",
    "the life of bees", "how rivers shape valleys", "learning to play the piano", "old lighthouses", "winter sports",
    "what clouds are made of", "the art of letters", "growing tomatoes", "the deep sea", "old railways", "good manners",
)  # fmt: skip


def prompts_for(tokenizer: object, streams: int) -> list[tuple[int, ...]]:
    """Prompts of about 70 tokens that lead to long answers."""
    texts = [
        f"Write a long, detailed and friendly article of several paragraphs about {TOPICS[i % len(TOPICS)]}, part {i}. "
        "Begin with its origins, then explain what people should know about it today, and end with an outlook."
        for i in range(streams)
    ]
    return [tokenizer.render([{"role": "user", "content": text}]) for text in texts]  # type: ignore[attr-defined]


class BareRun:
    """mlx-lm's generator as its own documentation uses it, on this thread."""

    def __init__(self, directory: Path) -> None:
        from inference.engine.model_loading import load_model

        self.loaded = load_model(directory, progress=lambda stage, done: None)

    def run(self, prompts: list[tuple[int, ...]], tokens: int) -> float:
        from mlx_lm.generate import BatchGenerator

        began, count = time.perf_counter(), 0
        generator = BatchGenerator(self.loaded.model, stop_tokens=[[token] for token in self.loaded.stop_tokens])
        live = set(generator.insert([list(prompt) for prompt in prompts], [tokens] * len(prompts)))
        while live:
            for response in generator.next()[1]:
                count += response.finish_reason != "stop"
                if response.finish_reason:
                    live.discard(response.uid)
        generator.close()
        return count / (time.perf_counter() - began)


class EngineRun:
    """Our engine, driven as a worker drives it."""

    def __init__(self, entry: ModelEntry, options: MlxOptions) -> None:
        self.engine, self.tokenizer = open_model(entry, sink=self.sink, options=options)
        self.engine.start()
        self.count = self.left = self.runs = 0
        self.done = threading.Event()

    def sink(self, chunks: list[Chunk]) -> None:
        for chunk in chunks:
            self.count += len(chunk.tokens)
            self.left -= chunk.finish is not None
        if self.left == 0:
            self.done.set()

    def run(self, prompts: list[tuple[int, ...]], tokens: int) -> float:
        self.runs += 1
        self.count, self.left = 0, len(prompts)
        self.done.clear()
        began = time.perf_counter()
        for i, prompt in enumerate(prompts):
            name = f"{self.runs}-{i}"  # its own scope: no prefix is shared, as in the bare run
            sampling = Sampling(temperature=0.0)
            request = GenerationRequest(id=name, prompt=prompt, max_tokens=tokens, sampling=sampling, cache_scope=name)
            self.engine.submit(request)
        self.done.wait()
        return self.count / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--blas-cache", type=Path, default=Path(".data/cache/blas"))
    arguments = parser.parse_args()

    preload_openblas(arguments.blas_cache)
    facts = verify_loadable(arguments.model)
    entry = ModelEntry(
        name="bench", source="bench", digest="", context_length=facts.context_length, vocab_size=facts.vocab_size,
        temperature=1.0, top_p=1.0, size_bytes=facts.size_bytes, weights=facts.weights, added_at="",
        path=arguments.model,
    )  # fmt: skip
    bare = BareRun(arguments.model)
    ours = EngineRun(entry, MlxOptions())
    try:
        prompts = prompts_for(ours.tokenizer, arguments.streams)
        bare.run(prompts, 4)
        ours.run(prompts, 4)
        rates: dict[str, list[float]] = {"bare": [], "engine": []}
        for number in range(arguments.passes):
            for name, runner in (
                (("bare", bare), ("engine", ours)) if number % 2 == 0 else (("engine", ours), ("bare", bare))
            ):
                rates[name].append(runner.run(prompts, arguments.tokens))
            print(f"pass {number + 1}: bare {rates['bare'][-1]:.1f} tok/s, engine {rates['engine'][-1]:.1f} tok/s")
        ratio = statistics.median(rates["engine"]) / statistics.median(rates["bare"])
        print(f"ratio at {arguments.streams} streams: {ratio:.3f}")
    finally:
        ours.engine.close()
        import mlx.core as mx

        mx.clear_streams()


if __name__ == "__main__":
    main()
