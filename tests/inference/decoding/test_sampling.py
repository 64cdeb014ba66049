"""Tokens are drawn as the parameters of their sequences say, and a seed alone decides."""

from typing import Any

import pytest

from inference.decoding.sampling import Draw, Sampler
from inference.types import Sampling


def logprobs(*weights: float) -> Any:
    import mlx.core as mx

    return mx.log(mx.array([weights]) / sum(weights))


def draws(sampling: Sampling, row: Any, count: int = 200) -> list[int]:
    sampler = Sampler([Draw.of(sampling)])
    return [sampler(row, [number]).item() for number in range(count)]


def test_temperature_zero_is_greedy() -> None:
    assert set(draws(Sampling(temperature=0.0), logprobs(1, 3, 2))) == {1}
    assert set(draws(Sampling(top_k=1, seed=5), logprobs(1, 3, 2))) == {1}


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


def test_every_row_is_drawn_in_its_own_way() -> None:
    """Whoever its neighbours are, and where its seed is, so is its text."""
    import mlx.core as mx

    ways = [
        Sampling(top_k=3, min_p=0.6),
        Sampling(temperature=0.0),
        Sampling(seed=5),
        Sampling(top_p=0.8),
        Sampling(top_k=2, temperature=5.0),
        Sampling(top_p=0.5, top_k=3, seed=7),
        Sampling(),
    ]
    row = logprobs(0.1, 0.2, 0.3, 0.4)
    rows = mx.concatenate([row] * len(ways))
    sampler = Sampler([Draw.of(sampling) for sampling in ways])
    drawn = [sampler(rows, [number] * len(ways)).tolist() for number in range(200)]
    columns = list(zip(*drawn, strict=True))
    wanted = [{2, 3}, {3}, {0, 1, 2, 3}, {1, 2, 3}, {2, 3}, {2, 3}, {0, 1, 2, 3}]
    assert [set(column) for column in columns] == wanted
    for place in (2, 5):
        assert list(columns[place]) == draws(ways[place], row)


def test_a_resumed_answer_draws_what_would_have_followed() -> None:
    row, sampling = logprobs(*[1.0] * 50), Sampling(seed=5)
    rest = Sampler([Draw.of(sampling, first=3)])
    assert [rest(row, [number]).item() for number in range(20)] == draws(sampling, row, 23)[3:]


@pytest.mark.parametrize("flat", [False, True])
def test_a_large_vocabulary_is_cut_at_the_same_place(flat: bool) -> None:
    """The short way over the likeliest thousand tokens, and the whole way where they don't hold enough."""
    import mlx.core as mx

    from inference.decoding.sampling import _last_within, _of_top_p

    logits = mx.random.normal((3, 20_000), key=mx.random.key(0)) * (0.01 if flat else 5.0)
    row = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
    whole = _last_within(mx.sort(row, axis=-1)[..., ::-1], 0.9)
    assert mx.allclose(_of_top_p(row, 0.9), whole).item()
