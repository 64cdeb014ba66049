"""Quantised keys and values: near the numbers that they stand for, and the same whoever moves them about."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.memory import StateCost
from inference.speculation.options import SpeculationOptions
from inference.types import ModelError, Sampling
from tests.inference.engine.test_batch import Bench
from tests.inference.tiny_models import CONFIGS, STOP, tiny_model
from tests.perf.engines.tiny_model import write_tiny_model

GREEDY = Sampling(temperature=0.0, logit_bias=((STOP, -100.0),))
PROMPTS = [(5, 6, 7, 8, 9, 10, 11), (20, 21, 20, 21, 20), (7,), (100, 5, 6, 101, 102, 103, 5, 6)]
WIDE = {"head_dim": 32}


def quantised_model(kind: str, bits: int) -> Any:
    """A tiny model with heads of 32 numbers."""
    from inference.engine.quantised_state import QuantisedState

    return QuantisedState(tiny_model(kind, **WIDE), bits)


@given(
    width=st.sampled_from([32, 64, 96, 128]),
    bits=st.sampled_from([4, 8]),
    kind=st.sampled_from(["float32", "float16", "bfloat16"]),
    seed=st.integers(0, 99),
)
def test_vectors_are_restored_to_half_a_step(width: int, bits: int, kind: str, seed: int) -> None:
    """Of the scale of their group; and to the same numbers each time."""
    import mlx.core as mx

    from inference.engine.quantised_state import quantised, restored

    dtype = getattr(mx, kind)
    vectors = (mx.random.normal((2, 3, 5, width), key=mx.random.key(seed)) * 3).astype(dtype)
    words = quantised(vectors, bits)
    again = restored(words, bits, width=width, dtype=dtype)
    assert (words.dtype, again.dtype, again.shape) == (mx.uint32, dtype, vectors.shape)
    spread = (vectors.max() - vectors.min()).item()
    precision = {"float32": 0.0, "float16": 0.01, "bfloat16": 0.1}[kind]
    assert mx.abs(vectors - again).max().item() <= spread / (2**bits - 1) + precision
    assert mx.array_equal(restored(words[:, :, 1:3], bits, width=width, dtype=dtype), again[:, :, 1:3]).item()


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("kind", ["full", "window", "hybrid"])
def test_an_answer_is_the_same_alone_in_a_batch_resumed_and_guessed(kind: str, bits: int) -> None:
    """Every token of it depends on the state; layers of other kinds are beside them."""
    model = quantised_model(kind, bits)
    alone = Bench(model)
    for number, prompt in enumerate(PROMPTS):
        alone.add(str(number), prompt, GREEDY)
        alone.finish()
    together = Bench(model, cache_bytes=1 << 24, speculation=SpeculationOptions())
    for turn in ("first", "again"):
        for number, prompt in enumerate(PROMPTS):
            together.add(f"{turn} {number}", prompt, GREEDY, cuts=(len(prompt) - 1,))
        together.finish()
        for number in range(len(PROMPTS)):
            assert together.tokens(f"{turn} {number}") == alone.tokens(str(number)) != []
    assert together.chunks["again 0"][0].cached_tokens == len(PROMPTS[0]) - 1
    alone.batch.close()
    together.batch.close()


def test_the_state_takes_less(tmp_path: Path) -> None:
    """As it is measured, and as it is expected by the model's files: with one layer that is restored at a time."""
    from inference import read_footprint
    from inference.engine.model_loading import load_model

    directory = tmp_path / "tiny"
    write_tiny_model(directory)
    costs: dict[int | None, StateCost] = {}
    for bits in (None, 8, 4):
        loaded = load_model(directory, as_fp32=False, kv_bits=bits, progress=lambda stage, done: None)
        costs[bits] = loaded.state_cost
        assert (
            loaded.state_cost
            == read_footprint(directory, memory=1 << 30, batch_size=4, prefill_step=64, kv_bits=bits).state
        )
    assert costs[4].per_token < costs[8].per_token < costs[None].per_token


@pytest.mark.parametrize(("kind", "reason"), [("recurrent", "no keys and values"), ("full", "not a multiple of 32")])
def test_a_model_that_cannot_is_refused_by_a_sentence(
    kind: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlx_lm import utils

    from inference.engine.model_loading import load_model

    monkeypatch.setattr(utils, "load_model", lambda directory: (tiny_model(kind), CONFIGS[kind]))
    with pytest.raises(ModelError, match=f"8 bits per key and value: .*{reason}"):
        load_model(tmp_path, as_fp32=False, kv_bits=8, progress=lambda stage, done: None)
