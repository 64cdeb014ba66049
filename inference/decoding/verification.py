"""Chooses the tokens of one pass: at each position as the sequence would without a draft, until the draft is wrong.

At each position a token is drawn from the distribution that the sequence has there, with the randomness that it has
there. While the draft agrees, the distribution at the next position is the right one too; the positions after the first
difference are ignored. So the text is distributed as without drafts, and greedy and seeded texts are the same.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import mlx.core as mx

from inference.decoding.row import Choice, Row
from inference.decoding.sampling import Sampler
from inference.decoding.scores import PendingScores, normalised


class _Chosen(NamedTuple):
    """What one sequence chose in a pass: the accepted tokens of its draft, and perhaps one more."""

    tokens: list[int]
    logits: Any
    """(tokens, vocabulary): what each token was drawn from."""


def choose(logits: Any, rows: Sequence[Row], drafts: Sequence[Sequence[int]]) -> list[list[Choice]]:
    """The next tokens of each sequence, at least one. logits: (sequences, positions, vocabulary), for the last token of
    each sequence and each token of its draft; positions beyond a short draft are ignored.
    """
    free = [number for number, row in enumerate(rows) if not row.processors]
    chosen: dict[int, _Chosen] = {}
    if len(free) < len(rows):
        start: Any = mx.async_eval
        start(logits)  # while the masks are computed
    if free:
        own_logits = logits if len(free) == len(rows) else logits[mx.array(free)]
        own = _choose_at_once(own_logits, [rows[number] for number in free], [drafts[number] for number in free])
        chosen.update(zip(free, own, strict=True))
    for number, row in enumerate(rows):
        if row.processors:
            chosen[number] = _choose_in_order(logits[number], row, drafts[number])
    return [_scored(row, chosen[number]) for number, row in enumerate(rows)]


def _choose_at_once(logits: Any, rows: Sequence[Row], drafts: Sequence[Sequence[int]]) -> list[_Chosen]:
    """All positions in one evaluation, for sequences whose distributions depend on the model alone."""
    count, positions, size = logits.shape
    sampler = Sampler([row.draw for row in rows for _ in range(positions)])
    numbers = [row.drawn + position for row in rows for position in range(positions)]
    sampled: list[list[int]] = sampler(logits.reshape(-1, size), numbers).reshape(count, positions).tolist()
    chosen = []
    for number, (tokens, draft) in enumerate(zip(sampled, drafts, strict=True)):
        accepted = next((place for place, token in enumerate(draft) if tokens[place] != token), len(draft))
        chosen.append(_Chosen(tokens[: accepted + 1], logits[number, : accepted + 1]))
    return chosen


def _choose_in_order(logits: Any, row: Row, draft: Sequence[int]) -> _Chosen:
    """One position after the other: processors follow the tokens, and must not see one that is not accepted."""
    sampler, token = Sampler([row.draw]), row.tokens[-1]
    tokens: list[int] = []
    used = []
    for position in range(len(draft) + 1):
        context, own_logits = row.context.update_and_fetch(mx.array([token])), logits[position : position + 1]
        for processor in row.processors:
            own_logits = processor(context, own_logits)
        if tokens and row.drafter is not None and row.drafter.has_ended:
            break
        token = sampler(own_logits, [row.drawn + position]).item()
        tokens.append(token)
        used.append(own_logits)
        if position < len(draft) and token != draft[position]:
            break
    return _Chosen(tokens, mx.concatenate(used))


def _scored(row: Row, chosen: _Chosen) -> list[Choice]:
    if row.top_logprobs is None:
        return [Choice(row, token) for token in chosen.tokens]
    counts = [row.top_logprobs] * len(chosen.tokens)
    scores = PendingScores(normalised(chosen.logits), mx.array(chosen.tokens), counts).read()
    return [Choice(row, token, score) for token, score in zip(chosen.tokens, scores, strict=True)]
