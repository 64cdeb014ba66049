"""Log-probabilities of chosen tokens, for the sequences that ask for them.

They are taken after penalties, bias and the constraint's mask, and before temperature, top_k, top_p and min_p. Only the
likeliest leave the device.

Guarantees: every value is finite, from -9999.0 to 0.0; the likeliest are sorted, most likely first, and among equals
the chosen token comes first; no forbidden token is among them.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import mlx.core as mx

_LEAST = -9999.0


class Scores(NamedTuple):
    """The log-probability of the chosen token, and the likeliest tokens by id."""

    chosen: float
    top: list[tuple[int, float]]


class PendingScores:
    """The scores of several tokens, while they are computed. Evaluate its `arrays` with the rest of the step."""

    def __init__(self, logprobs: Any, tokens: Any, counts: Sequence[int]) -> None:
        """logprobs: (tokens, vocabulary). tokens: the chosen ones. counts: how many of the likeliest each needs."""
        logprobs = mx.where(mx.isfinite(logprobs), logprobs, -math.inf)
        tokens = tokens[:, None].astype(mx.uint32)
        count = min(max(counts), logprobs.shape[-1])
        if count:
            likeliest = mx.argpartition(-logprobs, kth=count - 1, axis=-1)[:, :count]
            tokens = mx.concatenate([tokens, likeliest], axis=-1)
        self.arrays: Any = tokens, mx.take_along_axis(logprobs, tokens, axis=-1)
        self._counts = counts

    def read(self) -> list[Scores]:
        """Wait for them."""
        tokens: list[list[int]]
        values: list[list[float]]
        tokens, values = (array.tolist() for array in self.arrays)
        return [_scores(*row) for row in zip(tokens, values, self._counts, strict=True)]


def normalised(logits: Any) -> Any:
    """Log-probabilities over the vocabulary."""
    return logits - mx.logsumexp(logits, axis=-1, keepdims=True)


def _scores(tokens: list[int], values: list[float], count: int) -> Scores:
    """Scores from the chosen token, which comes first, and the likeliest ones in any order, perhaps with it."""
    chosen, logprobs = tokens[0], dict(zip(tokens, values, strict=True))
    possible = [token for token, value in logprobs.items() if value > -math.inf]
    possible.sort(key=lambda token: (-logprobs[token], token != chosen, token))
    return Scores(_bounded(values[0]), [(token, _bounded(logprobs[token])) for token in possible[:count]])


def _bounded(value: float) -> float:
    return min(0.0, max(_LEAST, value))
