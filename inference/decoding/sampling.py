"""Draws the next tokens of all sequences of a step in one computation, each in its own way.

The randomness of a seeded sequence depends on the seed and the position alone, not on neighbours.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import mlx.core as mx

from inference.types import Sampling

_NUCLEUS = 1024


class Draw(NamedTuple):
    """How the tokens of one sequence are drawn. The fields are those of Sampling."""

    temperature: float = 0.0
    """0 is greedy."""
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int | None = None
    first: int = 0
    """The position in the answer of the sequence's first token here."""

    @classmethod
    def of(cls, sampling: Sampling, *, first: int = 0) -> "Draw":
        """first: how many tokens of the answer are known already."""
        if sampling.temperature < 1e-4 or sampling.top_k == 1:
            return cls()
        return cls(sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p, sampling.seed, first)


class Sampler:
    """Draws a token for each row of logits."""

    def __init__(self, draws: Sequence[Draw]) -> None:
        rows: dict[type[_Greedy | _Free | _Seeded], list[int]] = {}
        for row, draw in enumerate(draws):
            kind = _Greedy if not draw.temperature else _Free if draw.seed is None else _Seeded
            rows.setdefault(kind, []).append(row)
        self._parts = [
            (kind([draws[row] for row in own]), own, mx.array(own) if len(rows) > 1 else None)
            for kind, own in rows.items()
        ]
        order = [row for own in rows.values() for row in own]
        self._places = mx.array(sorted(range(len(order)), key=order.__getitem__))

    def __call__(self, logits: Any, numbers: Sequence[int]) -> Any:
        """Token ids (rows). logits: (rows, vocabulary). numbers: how many tokens each sequence has drawn before."""
        drawn = [
            part.draw(logits if index is None else logits[index], [numbers[row] for row in own])
            for part, own, index in self._parts
        ]
        return drawn[0] if len(drawn) == 1 else mx.concatenate(drawn)[self._places]


class _Greedy:
    """The most likely token."""

    def __init__(self, draws: Sequence[Draw]) -> None:
        pass

    def draw(self, logits: Any, numbers: Sequence[int]) -> Any:
        return mx.argmax(logits, axis=-1)


class _Free:
    """Without a seed."""

    def __init__(self, draws: Sequence[Draw]) -> None:
        self._shape = _Shape(draws)

    def draw(self, logits: Any, numbers: Sequence[int]) -> Any:
        return mx.random.categorical(self._shape(logits))


class _Seeded:
    """Token n of a sequence is drawn with a key made of the seed and n."""

    def __init__(self, draws: Sequence[Draw]) -> None:
        self._draws, self._shape = draws, _Shape(draws)

    def draw(self, logits: Any, numbers: Sequence[int]) -> Any:
        keys = [_key(draw, number) for draw, number in zip(self._draws, numbers, strict=True)]
        noise = [mx.random.gumbel((1, logits.shape[-1]), key=key) for key in keys]
        # Not mx.random.categorical: it walks a cumulative sum, where the rounding of another batch size moves the draw
        # to a neighbour in the tail. The argmax of weights plus Gumbel noise hardly ever changes.
        return mx.argmax(self._shape(logits) + mx.concatenate(noise), axis=-1)


def _key(draw: Draw, number: int) -> Any:
    assert draw.seed is not None
    # Consecutive seeds and positions must not collide: spread the seed over 64 bits (Fibonacci hashing).
    return mx.random.key((draw.seed * 0x9E3779B97F4A7C15 + draw.first + number) % (1 << 64))


class _Shape:
    """Log-weights after temperature and then top_k, top_p and min_p, as in transformers; row by row."""

    def __init__(self, draws: Sequence[Draw]) -> None:
        self._scale = _column(1.0 / draw.temperature for draw in draws)
        self._top_k = [draw.top_k for draw in draws]
        self._top_p = _column(draw.top_p for draw in draws) if any(draw.top_p < 1.0 for draw in draws) else None
        self._min_p = (
            _column(math.log(draw.min_p) if draw.min_p > 0.0 else -math.inf for draw in draws)
            if any(draw.min_p > 0.0 for draw in draws)
            else None
        )

    def __call__(self, logits: Any) -> Any:
        scaled = logits * self._scale
        counts = [count if 0 < count < scaled.shape[-1] else 0 for count in self._top_k]
        if any(counts):
            scaled = _at_least(scaled, _of_top_k(scaled, counts))
        if self._top_p is not None:
            scaled = scaled - mx.logsumexp(scaled, axis=-1, keepdims=True)
            scaled = _at_least(scaled, mx.where(self._top_p < 1.0, _of_top_p(scaled, self._top_p), -math.inf))
        if self._min_p is not None:
            scaled = _at_least(scaled, scaled.max(axis=-1, keepdims=True) + self._min_p)
        return scaled


def _column(values: Any) -> Any:
    return mx.array([[value] for value in values], dtype=mx.float32)


def _at_least(scaled: Any, threshold: Any) -> Any:
    return mx.where(scaled < threshold, -math.inf, scaled)


def _of_top_k(scaled: Any, counts: Sequence[int]) -> Any:
    """For each row, the weight of the last of this many likeliest tokens; -inf where the count is 0."""
    most = max(counts)
    top = mx.topk(scaled, most, axis=-1)
    if min(counts) == most:
        return top.min(axis=-1, keepdims=True)
    ends = mx.array([[max(0, most - count)] for count in counts])
    last = mx.take_along_axis(mx.sort(top, axis=-1), mx.minimum(ends, most - 1), axis=-1)
    return mx.where(mx.array([[count > 0] for count in counts]), last, -math.inf)


def _of_top_p(logprobs: Any, top_p: Any) -> Any:
    """The log-probability of the last token of the smallest set with a probability of at least `top_p`."""
    if mx.default_device() == mx.Device(mx.cpu, 0) and logprobs.shape[-1] > 4 * _NUCLEUS:
        # Sorting a whole vocabulary takes 5 ms per row here, the likeliest thousand a tenth of that.
        top = mx.sort(mx.topk(logprobs, _NUCLEUS, axis=-1), axis=-1)[..., ::-1]
        is_enough = mx.exp(top).sum(axis=-1, keepdims=True) >= top_p
        if (is_enough | (mx.array(top_p) >= 1.0)).all().item():
            return _last_within(top, top_p)
    return _last_within(mx.sort(logprobs, axis=-1)[..., ::-1], top_p)


def _last_within(descending: Any, top_p: Any) -> Any:
    before = mx.cumsum(mx.exp(descending), axis=-1, inclusive=False)
    count = mx.maximum((before < top_p).sum(axis=-1, keepdims=True), 1)
    return mx.take_along_axis(descending, count - 1, axis=-1)
