"""Chooses the tokens of one pass: at each position as the sequence would without a draft, until the draft is wrong.

At each position a token is drawn from the distribution that the sequence has there, with the randomness that it has
there. While the draft agrees, the distribution at the next position is the right one too; the positions after the first
difference are ignored. So the text is distributed as without drafts, and greedy and seeded texts are the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import mlx.core as mx


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftedRow:
    """One sequence of a pass."""

    last: int
    """Its last known token, the first of the pass."""
    draft: list[int]
    sampler: Any
    processors: Sequence[Any] = ()
    add_context: Callable[[int], Any]
    """Adds a token to the context of the processors, and returns the context."""
    has_ended: Callable[[], bool] = field(default=lambda: False)
    """Whether the processors allow no further token; asked after each of their calls."""


class Chosen(NamedTuple):
    """What one sequence chose in a pass: the accepted tokens of its draft, and one more."""

    tokens: list[int]
    logprobs: list[Any]
    """For each token, the log-probabilities over the vocabulary that it was drawn from."""


def choose(logits: Any, rows: Sequence[DraftedRow]) -> list[Chosen]:
    """The tokens of each sequence. logits: (sequences, positions, vocabulary), for each token of `last` and `draft`."""
    free = [number for number, row in enumerate(rows) if not row.processors]
    chosen: dict[int, Chosen] = {}
    if free:
        own_logits = logits if len(free) == len(rows) else logits[mx.array(free)]
        chosen.update(zip(free, _choose_at_once(own_logits, [rows[number] for number in free]), strict=True))
    if len(free) < len(rows):
        start: Any = mx.async_eval
        start(logits)  # while the masks are computed
    for number, row in enumerate(rows):
        if row.processors:
            chosen[number] = _choose_in_order(logits[number], row)
    return [chosen[number] for number in range(len(rows))]


def _choose_at_once(logits: Any, rows: Sequence[DraftedRow]) -> list[Chosen]:
    """All positions in one evaluation, for sequences whose distributions depend on the model alone."""
    logprobs = _normalised(logits)
    sampler = rows[0].sampler
    # A sampler that counts its positions must not draw those beyond the end of a short draft.
    if all(row.sampler is sampler for row in rows) and not hasattr(sampler, "rewind"):
        sampled = list(sampler(logprobs.reshape(-1, logprobs.shape[-1])).reshape(logprobs.shape[:2]))
    else:
        sampled = [row.sampler(logprobs[number, : len(row.draft) + 1]) for number, row in enumerate(rows)]
    mx.eval(sampled, logprobs)
    chosen = []
    for number, row in enumerate(rows):
        tokens: list[int] = sampled[number].tolist()
        accepted = next((i for i, token in enumerate(row.draft) if tokens[i] != token), len(row.draft))
        if hasattr(row.sampler, "rewind"):
            row.sampler.rewind(len(row.draft) - accepted)
        chosen.append(Chosen(tokens[: accepted + 1], list(logprobs[number, : accepted + 1])))
    return chosen


def _choose_in_order(logits: Any, row: DraftedRow) -> Chosen:
    """One position after the other: processors follow the tokens, and must not see one that is not accepted."""
    chosen = Chosen([], [])
    token = row.last
    for position in range(len(row.draft) + 1):
        context, own_logits = row.add_context(token), logits[position : position + 1]
        for processor in row.processors:
            own_logits = processor(context, own_logits)
        logprobs = _normalised(own_logits)
        token = row.sampler(logprobs).item()
        chosen.tokens.append(token)
        chosen.logprobs.append(logprobs[0])
        if position == len(row.draft) or token != row.draft[position] or row.has_ended():
            break
    return chosen


def _normalised(logits: Any) -> Any:
    return logits - mx.logsumexp(logits, axis=-1, keepdims=True)
