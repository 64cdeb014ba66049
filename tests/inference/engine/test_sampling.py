"""Samplers choose as their parameters say, and a seed alone decides."""

from typing import Any

import pytest

from inference.engine.sampling import greedy, sampler_for
from inference.types import Sampling


def logprobs(*weights: float) -> Any:
    import mlx.core as mx

    return mx.log(mx.array([weights]) / sum(weights))


def draws(sampling: Sampling, row: Any, count: int = 200) -> list[int]:
    sampler = sampler_for(sampling)
    return [sampler(row).item() for _ in range(count)]


def test_temperature_zero_is_greedy_and_shared() -> None:
    assert sampler_for(Sampling(temperature=0.0)) is greedy
    assert sampler_for(Sampling(top_k=1, seed=5)) is greedy
    assert greedy(logprobs(1, 3, 2)).item() == 1


def test_sequences_without_a_seed_share_a_sampler() -> None:
    assert sampler_for(Sampling(temperature=0.7)) is sampler_for(Sampling(temperature=0.7))
    assert sampler_for(Sampling(temperature=0.7)) is not sampler_for(Sampling(temperature=0.8))
    assert sampler_for(Sampling(top_k=5)) is not sampler_for(Sampling(top_k=6))
    assert sampler_for(Sampling(min_p=0.1)) is not sampler_for(Sampling(min_p=0.2))
    assert sampler_for(Sampling(seed=1)) is not sampler_for(Sampling(seed=1))


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    row = logprobs(*[1.0] * 50)
    assert draws(Sampling(seed=5), row) == draws(Sampling(seed=5), row)
    assert draws(Sampling(seed=5), row) != draws(Sampling(seed=6), row)
    assert draws(Sampling(seed=-(2**70)), row) == draws(Sampling(seed=-(2**70)), row)
    assert draws(Sampling(seed=5), row)[1:] != draws(Sampling(seed=6), row)[:-1]


def test_top_p_keeps_the_smallest_set_that_holds_it() -> None:
    row = logprobs(0.5, 0.3, 0.15, 0.05)
    assert set(draws(Sampling(top_p=0.5, seed=1), row)) == {0}
    assert set(draws(Sampling(top_p=0.51, seed=1), row)) == {0, 1}
    assert set(draws(Sampling(top_p=0.0, seed=1), row)) == {0}
    assert set(draws(Sampling(top_p=1.0, seed=1), row)) == {0, 1, 2, 3}


def test_top_p_acts_on_what_temperature_made() -> None:
    assert set(draws(Sampling(temperature=0.1, top_p=0.9, seed=1), logprobs(0.5, 0.3, 0.2))) == {0}


def test_top_k_keeps_so_many_of_the_likeliest() -> None:
    row = logprobs(0.1, 0.4, 0.2, 0.3)
    assert set(draws(Sampling(top_k=2, seed=1), row)) == {1, 3}
    assert set(draws(Sampling(top_k=3, seed=1), row)) == {1, 2, 3}
    for everything in (0, 4, 2**31 - 1):
        assert set(draws(Sampling(top_k=everything, seed=1), row)) == {0, 1, 2, 3}


def test_min_p_keeps_what_has_a_share_of_the_likeliest() -> None:
    row = logprobs(0.1, 0.4, 0.21, 0.29)
    assert set(draws(Sampling(min_p=0.5, seed=1), row)) == {1, 2, 3}
    assert set(draws(Sampling(min_p=0.6, seed=1), row)) == {1, 3}
    assert set(draws(Sampling(min_p=1.0, seed=1), row)) == {1}
    assert set(draws(Sampling(min_p=0.0, seed=1), row)) == {0, 1, 2, 3}
    assert set(draws(Sampling(min_p=0.5, temperature=2.0, seed=1), row)) == {0, 1, 2, 3}, "of what temperature made"


def test_top_p_acts_on_what_top_k_left() -> None:
    """0.4 of 0.66 is more than 0.6; 0.4 of everything is not."""
    row = logprobs(0.4, 0.26, 0.14, 0.2)
    assert set(draws(Sampling(top_p=0.6, top_k=2, seed=1), row)) == {0}
    assert set(draws(Sampling(top_p=0.6, seed=1), row)) == {0, 1}


def test_every_row_is_cut_by_itself() -> None:
    """Sequences that share a sampler are sampled together."""
    import mlx.core as mx

    rows = mx.concatenate([logprobs(0.1, 0.2, 0.3, 0.4), logprobs(0.4, 0.3, 0.2, 0.1)])
    sampler = sampler_for(Sampling(top_k=3, min_p=0.6))
    drawn = [sampler(rows).tolist() for _ in range(100)]
    assert [set(column) for column in zip(*drawn, strict=True)] == [{2, 3}, {0, 1}]


@pytest.mark.parametrize("flat", [False, True])
def test_a_large_vocabulary_is_cut_at_the_same_place(flat: bool) -> None:
    """The short way over the likeliest thousand tokens, and the whole way where they don't hold enough."""
    import mlx.core as mx

    from inference.engine.sampling import _last_within, _threshold

    logits = mx.random.normal((3, 20_000), key=mx.random.key(0)) * (0.01 if flat else 5.0)
    row = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
    whole = _last_within(mx.sort(row, axis=-1)[..., ::-1], 0.9)
    assert mx.allclose(_threshold(row, 0.9), whole).item()
