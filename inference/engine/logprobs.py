"""How likely the tokens of a step were, for the sequences that asked and for no others.

BatchGenerator has these numbers over the whole vocabulary, since it draws from them: after penalties, bias and the
constraint's mask, before temperature, top_k, top_p and min_p. Only the likeliest leave the device, those of all
sequences of a step together, on a stream of their own: the generator's is busy with the next step already.

Guarantees: every value is finite, from -9999.0 to 0.0; the likeliest come most likely first, and among equals first the
token that was chosen; no forbidden token is among them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import mlx.core as mx

from inference.engine.detokenizer import BytesDetokenizer, Detokenizer
from inference.types import TokenLogprob

_LEAST = -9999.0
_stream: Any = mx.new_thread_local_stream(mx.default_device())


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One sequence's place in a step."""

    logprobs: Any
    """A vector over the vocabulary, evaluated."""
    token: int
    """The one that was chosen."""
    count: int
    """How many of the likeliest are wanted."""


class Scores(NamedTuple):
    """The answer to that, in token ids."""

    chosen: float
    top: list[tuple[int, float]]


def score(asked: Sequence[Asked]) -> list[Scores]:
    """What each of them asked for, in order; one evaluation for all."""
    if not asked:
        return []
    with mx.stream(_stream):
        logprobs = mx.stack([place.logprobs for place in asked])
        logprobs = mx.where(mx.isfinite(logprobs), logprobs, -float("inf"))
        tokens = mx.array([[place.token] for place in asked], dtype=mx.uint32)
        count = min(max(place.count for place in asked), logprobs.shape[-1])
        if count:
            likeliest = mx.argpartition(-logprobs, kth=count - 1, axis=-1)[:, :count]
            tokens = mx.concatenate([tokens, likeliest], axis=-1)
        values = mx.take_along_axis(logprobs, tokens, axis=-1)
        mx.eval(tokens, values)
    token_rows: Any = tokens.tolist()
    value_rows: Any = values.tolist()
    return [
        _scores(row_tokens, row_values, place.count)
        for row_tokens, row_values, place in zip(token_rows, value_rows, asked, strict=True)
    ]


class Spelling:
    """The bytes that a model's tokens spell; none for what is no text, and for ids beyond the tokenizer's."""

    def __init__(self, new_detokenizer: Callable[[], Detokenizer]) -> None:
        self._new_detokenizer = new_detokenizer
        detokenizer = new_detokenizer()
        self._table = detokenizer.token_bytes if isinstance(detokenizer, BytesDetokenizer) else None
        self._known: dict[int, bytes] = {}

    def describe(self, token: int, scores: Scores, *, text: str) -> TokenLogprob:
        """The token that was chosen, with what its sequence asked for.

        `text` is what became complete with the token. Where tokens are not bytes it is what the token spells, so that
        what an answer's tokens spell, joined, is its text.
        """
        spelt = _utf8(text) if self._table is None else self.spell(token)
        top = tuple((spelt if other == token else self.spell(other), value) for other, value in scores.top)
        return TokenLogprob(token=spelt, logprob=scores.chosen, top=top)

    def spell(self, token: int) -> bytes:
        """The bytes of one token."""
        if self._table is not None:
            return self._table[token] if token < len(self._table) else b""
        if token not in self._known:
            detokenizer = self._new_detokenizer()
            detokenizer.add(token)  # before itself: tokenizers drop the blank at the beginning of a text
            self._known[token] = _utf8(detokenizer.add(token))
        return self._known[token]


def _scores(tokens: list[int], values: list[float], count: int) -> Scores:
    """From the chosen token and the likeliest ones, which may hold it too and are in no order."""
    chosen, found = tokens[0], dict(zip(tokens, values, strict=True))
    possible = [token for token, value in found.items() if value > -math.inf]
    possible.sort(key=lambda token: (-found[token], token != chosen, token))
    return Scores(_bounded(values[0]), [(token, _bounded(found[token])) for token in possible[:count]])


def _bounded(value: float) -> float:
    return min(0.0, max(_LEAST, value))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")
