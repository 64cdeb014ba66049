"""Log-probabilities of the tokens of a step, for the sequences whose requests ask for them.

BatchGenerator has them over the whole vocabulary, since it samples from them: after penalties, bias and the
constraint's mask, before temperature, top_k, top_p and min_p. Only the likeliest leave the device, those of all
sequences of a step together, on a separate stream: the generator's is busy with the next step by then.

Guarantees: every value is finite, from -9999.0 to 0.0; the likeliest are sorted, most likely first, and among equals
the chosen token comes first; no forbidden token is among them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import mlx.core as mx

from inference.engine.detokenizer import BytesDetokenizer, Detokenizer
from inference.types import TokenLogprob

_LEAST = -9999.0
_stream: Any = mx.new_thread_local_stream(mx.default_device())


@dataclass(frozen=True, slots=True, kw_only=True)
class LogprobQuery:
    """The log-probabilities that one sequence needs from a step."""

    logprobs: Any
    """A vector over the vocabulary, evaluated."""
    token: int
    """The chosen token."""
    count: int
    """How many of the likeliest to return."""


class Scores(NamedTuple):
    """The log-probability of the chosen token, and the likeliest tokens by id."""

    chosen: float
    top: list[tuple[int, float]]


def score(queries: Sequence[LogprobQuery]) -> list[Scores]:
    """The scores for each query, in order; one evaluation for all."""
    if not queries:
        return []
    with mx.stream(_stream):
        logprobs = mx.stack([query.logprobs for query in queries])
        logprobs = mx.where(mx.isfinite(logprobs), logprobs, -float("inf"))
        tokens = mx.array([[query.token] for query in queries], dtype=mx.uint32)
        count = min(max(query.count for query in queries), logprobs.shape[-1])
        if count:
            likeliest = mx.argpartition(-logprobs, kth=count - 1, axis=-1)[:, :count]
            tokens = mx.concatenate([tokens, likeliest], axis=-1)
        values = mx.take_along_axis(logprobs, tokens, axis=-1)
        mx.eval(tokens, values)
    token_rows: Any = tokens.tolist()
    value_rows: Any = values.tolist()
    return [
        _scores(row_tokens, row_values, query.count)
        for row_tokens, row_values, query in zip(token_rows, value_rows, queries, strict=True)
    ]


def score_responses(responses: Sequence[Any], counts: Mapping[int, int | None]) -> list[Scores | None]:
    """The scores for each response of a step whose sequence has a count in `counts`; the stop token has none."""
    wanted = [None if response.finish_reason == "stop" else counts[response.uid] for response in responses]
    scores = iter(
        score(
            [
                LogprobQuery(logprobs=response.logprobs, token=response.token, count=count)
                for response, count in zip(responses, wanted, strict=True)
                if count is not None
            ]
        )
    )
    return [None if count is None else next(scores) for count in wanted]


class Spelling:
    """The bytes of a model's tokens; empty for tokens that are not text, and for ids beyond the tokenizer's."""

    def __init__(self, new_detokenizer: Callable[[], Detokenizer]) -> None:
        self._new_detokenizer = new_detokenizer
        detokenizer = new_detokenizer()
        self._table = detokenizer.token_bytes if isinstance(detokenizer, BytesDetokenizer) else None
        self._known: dict[int, bytes] = {}

    def describe(self, token: int, scores: Scores, *, text: str) -> TokenLogprob:
        """The chosen token and its scores, with their bytes.

        `text` is the text that the token completed. Where tokens are not bytes, its bytes are those of the token, so
        that the bytes of an answer's tokens, joined, are its text.
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
            detokenizer.add(token)  # before itself: tokenizers drop the space at the beginning of a text
            self._known[token] = _utf8(detokenizer.add(token))
        return self._known[token]


def _scores(tokens: list[int], values: list[float], count: int) -> Scores:
    """Scores from the chosen token, which comes first, and the likeliest ones in any order, perhaps with it."""
    chosen, logprobs = tokens[0], dict(zip(tokens, values, strict=True))
    possible = [token for token, value in logprobs.items() if value > -math.inf]
    possible.sort(key=lambda token: (-logprobs[token], token != chosen, token))
    return Scores(_bounded(values[0]), [(token, _bounded(logprobs[token])) for token in possible[:count]])


def _bounded(value: float) -> float:
    return min(0.0, max(_LEAST, value))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")
