"""mlx-lm's `BatchGenerator` and nothing else, as its own documentation uses it: what a server is measured against."""

from pathlib import Path
from typing import Any

from .child import TEMPERATURE, TOP_P, Meter, Rates, SamplingKind, Work, serve


def main(model_path: str, libraries: str) -> None:
    """Serve standard input until it ends."""
    from inference.blas import preload_blas

    preload_blas(Path(libraries))
    import mlx.core as mx
    from mlx_lm import load

    model, tokenizer = load(model_path)[:2]
    mx.eval(model.parameters())
    serve(lambda work: generate(model, tokenizer, work))
    mx.clear_streams()


def generate(model: Any, tokenizer: Any, work: Work) -> Rates:
    """Generate all sequences in one batch."""
    from mlx_lm.generate import BatchGenerator

    prompts = [
        tokenizer.apply_chat_template([{"role": "user", "content": text}], add_generation_prompt=True)
        for text in work.texts
    ]
    generator = BatchGenerator(model, max_tokens=work.tokens, stop_tokens=[[t] for t in tokenizer.eos_token_ids])
    meter = Meter(len(prompts))
    left = set(generator.insert(prompts, samplers=samplers(work.sampling, len(prompts))))
    while left:
        step(generator, meter, left)
    generator.close()
    return meter.rates()


def step(generator: Any, meter: Meter, left: set[int]) -> None:
    """One step, and what it made."""
    _, responses = generator.next()
    ended = {response.uid for response in responses if response.finish_reason is not None}
    left -= ended
    meter.note({r.uid: int(r.finish_reason != "stop") for r in responses}, ended=bool(ended))


def samplers(kind: SamplingKind, count: int) -> list[Any] | None:
    """A sampler for each sequence; one object for all lets a batch be sampled at once."""
    from mlx_lm.sample_utils import make_sampler

    if kind == "greedy":
        return None
    if kind == "same":
        return [make_sampler(temp=TEMPERATURE, top_p=TOP_P)] * count
    return [make_sampler(temp=TEMPERATURE + 0.001 * place, top_p=TOP_P) for place in range(count)]
