"""Samplers for BatchGenerator. They never raise: that would corrupt neighbouring sequences.

Sequences that share a sampler object are sampled in one call, so sequences without a seed share theirs by shape. A
seeded sequence has its own, whose randomness depends on the seed and the position alone, not on neighbours.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import mlx.core as mx

from inference.types import Sampling

Sampler = Callable[[Any], Any]
_NUCLEUS = 1024


class _Shape(NamedTuple):
    """How a distribution is reshaped; the fields are those of Sampling."""

    temperature: float
    top_k: int
    top_p: float
    min_p: float


def sampler_for(sampling: Sampling, *, position: int = 0) -> Sampler:
    """The sampler for one sequence from this position on: log-probabilities (rows, vocabulary) to token ids (rows)."""
    if sampling.temperature < 1e-4 or sampling.top_k == 1:
        return greedy
    shape = _Shape(sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p)
    return _shared(shape) if sampling.seed is None else _Seeded(sampling.seed, shape, position)


def greedy(logprobs: Any) -> Any:
    """The most likely token."""
    return mx.argmax(logprobs, axis=-1)


@lru_cache(maxsize=256)
def _shared(shape: _Shape) -> Sampler:
    def sample(logprobs: Any) -> Any:
        return mx.random.categorical(_shaped(logprobs, shape))

    return sample


class _Seeded:
    """One sequence's own randomness: token n is drawn with a key made of the seed and n.

    Several rows are consecutive positions of the sequence.
    """

    def __init__(self, seed: int, shape: _Shape, position: int) -> None:
        self._seed, self._shape, self._position = seed, shape, position

    def __call__(self, logprobs: Any) -> Any:
        shaped = _shaped(logprobs, self._shape)
        noise = [mx.random.gumbel((1, shaped.shape[-1]), key=self._next_key()) for _ in range(shaped.shape[0])]
        # Not mx.random.categorical: it walks a cumulative sum, where the rounding of another batch size moves the draw
        # to a neighbour in the tail. The argmax of weights plus Gumbel noise hardly ever changes.
        return mx.argmax(shaped + mx.concatenate(noise), axis=-1)

    def rewind(self, count: int) -> None:
        """Forget the latest positions: they will be drawn again."""
        self._position -= count

    def _next_key(self) -> Any:
        # Consecutive seeds and positions must not collide: spread the seed over 64 bits (Fibonacci hashing).
        key = mx.random.key((self._seed * 0x9E3779B97F4A7C15 + self._position) % (1 << 64))
        self._position += 1
        return key


def _shaped(logprobs: Any, shape: _Shape) -> Any:
    """Log-weights after temperature and then top_k, top_p and min_p, as in transformers."""
    scaled = logprobs * (1.0 / shape.temperature)
    if 0 < shape.top_k < scaled.shape[-1]:
        scaled = _at_least(scaled, mx.topk(scaled, shape.top_k, axis=-1).min(axis=-1, keepdims=True))
    if shape.top_p < 1.0:
        scaled = scaled - mx.logsumexp(scaled, axis=-1, keepdims=True)
        scaled = _at_least(scaled, _threshold(scaled, shape.top_p))
    if shape.min_p > 0.0:
        scaled = _at_least(scaled, scaled.max(axis=-1, keepdims=True) + math.log(shape.min_p))
    return scaled


def _at_least(scaled: Any, threshold: Any) -> Any:
    return mx.where(scaled < threshold, -float("inf"), scaled)


def _threshold(logprobs: Any, top_p: float) -> Any:
    """The log-probability of the last token of the smallest set with a probability of at least `top_p`."""
    if mx.default_device() == mx.Device(mx.cpu, 0) and logprobs.shape[-1] > 4 * _NUCLEUS:
        # Sorting a whole vocabulary takes 5 ms per row here, the likeliest thousand a tenth of that.
        top = mx.sort(mx.topk(logprobs, _NUCLEUS, axis=-1), axis=-1)[..., ::-1]
        if (mx.exp(top).sum(axis=-1) >= top_p).all().item():
            return _last_within(top, top_p)
    return _last_within(mx.sort(logprobs, axis=-1)[..., ::-1], top_p)


def _last_within(descending: Any, top_p: float) -> Any:
    before = mx.cumsum(mx.exp(descending), axis=-1, inclusive=False)
    count = mx.maximum((before < top_p).sum(axis=-1, keepdims=True), 1)
    return mx.take_along_axis(descending, count - 1, axis=-1)
