"""The prefix cache is private to a scope, bounded in bytes, and never covers a whole prompt."""

from typing import Any

import pytest

from inference.prefix_cache.layout import Layout
from inference.prefix_cache.prefix_cache import PrefixCache

from .fakes import new_state

BYTES = 2 * 4 * 8  # a token: keys and values, one head of 8 numbers in fp32


def state(length: int) -> list[Any]:
    import mlx.core as mx
    from mlx_lm.models.cache import KVCache

    cache = KVCache()
    cache.keys = mx.broadcast_to(mx.arange(length, dtype=mx.float32)[None, None, :, None], (1, 1, length, 8))
    cache.values, cache.offset = cache.keys + 0.0, length
    return [cache]


def new_cache(max_bytes: int = 10**9) -> PrefixCache:
    return PrefixCache(max_bytes, Layout(state(1)))


def fetch(cache: PrefixCache, scope: str, prompt: tuple[int, ...]) -> tuple[list[Any] | None, int]:
    hit = cache.fetch(scope, prompt)
    return hit.cache, hit.covered


def test_the_longest_common_prefix_is_found_and_trimmed() -> None:
    cache = new_cache()
    cache.insert("a", [1, 2, 3, 4], state(4))
    cache.insert("a", [1, 2, 9, 9, 9], state(5))
    found, covered = fetch(cache, "a", (1, 2, 3, 7, 8))
    assert covered == 3
    assert found is not None
    assert found[0].offset == 3


def test_an_exact_hit_leaves_one_token_to_compute() -> None:
    cache = new_cache()
    cache.insert("a", [1, 2, 3], state(3))
    assert fetch(cache, "a", (1, 2, 3))[1] == 2
    assert fetch(cache, "a", (1,)) == (None, 0)


def test_a_scope_never_reads_another() -> None:
    cache = new_cache()
    cache.insert("a", [1, 2, 3], state(3))
    assert fetch(cache, "b", (1, 2, 3, 4)) == (None, 0)
    assert fetch(cache, "", (1, 2, 3, 4)) == (None, 0)


def test_what_is_fetched_may_grow_without_harm_to_what_is_kept() -> None:
    import mlx.core as mx

    cache = new_cache()
    cache.insert("a", [1, 2, 3], state(3))
    for _ in range(2):
        found, covered = fetch(cache, "a", (1, 2, 7))
        assert found is not None
        assert covered == 2
        keys, _values = found[0].update_and_fetch(mx.full((1, 1, 1, 8), 9.0), mx.zeros((1, 1, 1, 8)))
        assert keys[0, 0, :, 0].tolist() == [0.0, 1.0, 9.0]


def test_a_longer_state_replaces_its_prefix_and_a_shorter_one_is_not_kept() -> None:
    cache = new_cache()
    cache.insert("a", [1, 2], state(2))
    cache.insert("a", [1, 2, 3], state(3))
    cache.insert("a", [1], state(1))
    assert cache.nbytes == 3 * BYTES


def test_it_stays_within_its_bytes_and_drops_the_least_used() -> None:
    cache = new_cache(25 * BYTES)
    cache.insert("a", [1] * 10, state(10))
    cache.insert("a", [2] * 10, state(10))
    fetch(cache, "a", (1,) * 11)
    cache.insert("a", [3] * 10, state(10))
    assert cache.nbytes <= cache.max_bytes
    assert [fetch(cache, "a", (first,) * 11)[1] for first in (1, 2, 3)] == [10, 0, 10]
    cache.insert("a", [4] * 26, state(26))
    assert fetch(cache, "a", (1,) * 11)[1] == 10, "what could never fit evicts nothing"


@pytest.mark.parametrize("max_bytes", [0])
def test_zero_bytes_keep_nothing(max_bytes: int) -> None:
    cache = new_cache(max_bytes)
    cache.insert("a", [1, 2], state(2))
    assert (cache.nbytes, fetch(cache, "a", (1, 2, 3))) == (0, (None, 0))


def test_a_scope_that_is_forgotten_keeps_nothing_and_takes_nothing_more() -> None:
    cache = new_cache()
    cache.insert("a", [1, 2, 3], state(3))
    cache.insert("b", [1, 2, 3], state(3))
    cache.forget("a")
    assert not cache.insert("a", [4, 5, 6], state(3))
    assert fetch(cache, "a", (1, 2, 3, 4)) == fetch(cache, "a", (4, 5, 6, 7)) == (None, 0)
    assert fetch(cache, "b", (1, 2, 3, 4))[1] == 3
    assert cache.nbytes == 3 * BYTES


def test_where_nobody_resumes_a_snapshot_goes_before_the_end_of_another_sequence() -> None:
    """The sequences that continue it stay."""
    one = sum(layer.nbytes for layer in new_state("recurrent", (1,)))
    cache = PrefixCache(3 * one, Layout(new_state("recurrent", (1,))))
    for tokens in ((1,), (9,), (1, 2), (1, 2, 3)):
        cache.insert("a", tokens, new_state("recurrent", tokens))
    assert [cache.fetch("a", (*tokens, 0)).covered for tokens in ((1,), (9,), (1, 2), (1, 2, 3))] == [0, 1, 2, 3]
    assert cache.nbytes == 3 * one
