"""Changes the logits of one sequence before its next token is chosen: penalties and bias, then its constraint, then
the end of its thinking.

In this order: `repetition_penalty` over the tokens of prompt and answer (positive logits are divided by it, negative
ones multiplied, as in transformers and vLLM); then, as OpenAI documents them, the presence and frequency penalties over
the tokens of the answer, and the bias. A processor must not raise, or all sequences of its step would end with it.
Tokens that the model doesn't have, the only cause of failure, are refused before.
"""

from collections.abc import Sequence
from typing import Any

import mlx.core as mx

from inference.constraints.masks import Masks
from inference.constraints.matching import Matcher
from inference.decoding.row import Processor
from inference.engine.thinking import ThinkingWatch
from inference.types import Sampling

_FAST_MASK_SECONDS = 0.002
"""Taking a token and asking about a draft take about as long as a mask at most, without the limit that masks have."""


def processors_for(
    sampling: Sampling,
    *,
    prompt_length: int,
    matcher: Matcher | None = None,
    masks: Masks | None = None,
    watch: ThinkingWatch | None = None,
) -> list[Processor]:
    """The processors that a new sequence needs, in order. All but the last two are lazy and never wait.

    For a resumed answer, matcher and watch have taken the tokens that were generated before.
    """
    asks = (
        sampling.repetition_penalty != 1.0
        or sampling.presence_penalty
        or sampling.frequency_penalty
        or sampling.logit_bias
    )
    processors: list[Processor] = [_Adjustment(sampling, prompt_length)] if asks else []
    if matcher is not None:
        processors.append(Constrained(matcher, masks or Masks()))
    if watch is not None:
        processors.append(_Limited(watch))
    return processors


def constraint_among(processors: Sequence[Processor]) -> "Constrained | None":
    """The processor that holds a sequence to its constraint."""
    return next((processor for processor in processors if isinstance(processor, Constrained)), None)


class _Adjustment:
    def __init__(self, sampling: Sampling, prompt_length: int) -> None:
        self._sampling, self._prompt_length = sampling, prompt_length
        self._in_prompt: Any = None
        self._biased = mx.array([token for token, _ in sampling.logit_bias], dtype=mx.int32)
        self._bias = mx.array([bias for _, bias in sampling.logit_bias], dtype=mx.float32)

    def __call__(self, tokens: Any, logits: Any) -> Any:
        sampling = self._sampling
        counts = _counts(tokens[self._prompt_length :], logits.shape[-1])
        if sampling.repetition_penalty != 1.0:
            if self._in_prompt is None:
                self._in_prompt = _counts(tokens[: self._prompt_length], logits.shape[-1]) > 0
            penalty = sampling.repetition_penalty
            seen = self._in_prompt | (counts > 0)
            logits = mx.where(seen, mx.where(logits > 0, logits / penalty, logits * penalty), logits)
        if sampling.presence_penalty:
            logits = logits - (counts > 0) * sampling.presence_penalty
        if sampling.frequency_penalty:
            logits = logits - counts * sampling.frequency_penalty
        if sampling.logit_bias:
            logits = logits.at[:, self._biased].add(self._bias)
        return logits


class Constrained:
    """Forbids tokens that can't follow. It waits for the token chosen last, since the next mask depends on it.

    It is a `Guide` of drafts too.
    """

    waits = True

    def __init__(self, matcher: Matcher, masks: Masks) -> None:
        self._matcher, self._masks = matcher, masks
        self._taken = 0
        """How many tokens of prompt and answer lie behind the matcher; 0 before it is asked."""
        self._next_mask = b""

    def __call__(self, tokens: Any, logits: Any) -> Any:
        count = len(tokens)
        computed, self._next_mask = self._next_mask, b""
        if not computed:
            computed = self._masks.next(self._matcher, tokens[-1].item() if 0 < self._taken < count else None)
        self._taken = count
        if not computed:
            return logits  # the matcher has failed: the batch ends its sequence after this step
        size = logits.shape[-1]  # a model may have more rows than its tokenizer has tokens
        mask: Any = memoryview(computed[:size].ljust(size, b"\0"))
        allowed = mx.array(mask)
        return mx.where(allowed, logits, -float("inf"))

    def take(self, tokens: Sequence[int]) -> None:
        """Take the last of these tokens, of prompt and answer, unless it is taken."""
        if self._taken < len(tokens):
            self._taken = len(tokens)
            if self.is_fast:
                self._matcher.advance(tokens[-1])
            else:
                self._next_mask = self._masks.next(self._matcher, tokens[-1])

    @property
    def has_ended(self) -> bool:
        """Nothing may follow, or the matcher has failed."""
        return self._matcher.has_failed or self._matcher.must_end

    @property
    def is_fast(self) -> bool:
        """Its masks have been computed in no time."""
        return self._matcher.mask_seconds <= _FAST_MASK_SECONDS

    def forced(self) -> list[int]:
        """The tokens that spell what must follow."""
        return self._matcher.forced()

    def count_allowed(self, tokens: Sequence[int]) -> int:
        """How many of the tokens, from the first, may follow."""
        return self._matcher.count_allowed(tokens)


class _Limited:
    """Leaves one token only when thinking has to end. The constraint allows it: thinking may be any text."""

    waits = True

    def __init__(self, watch: ThinkingWatch) -> None:
        self._watch = watch
        self._has_begun = False

    def __call__(self, tokens: Any, logits: Any) -> Any:
        if self._has_begun and not self._watch.is_over:
            self._watch.add(tokens[-1].item())
        self._has_begun = True
        if self._watch.forced is None:
            return logits
        return mx.where(mx.arange(logits.shape[-1]) == self._watch.forced, 0.0, -float("inf")).reshape(1, -1)


def _counts(tokens: Any, size: int) -> Any:
    """How often each token of the vocabulary occurs."""
    return mx.zeros((size,), dtype=mx.float32).at[tokens].add(1.0)
