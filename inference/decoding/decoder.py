"""All sequences of one model that generate, one token of each per step. One thread owns it (decision 25).

A step may begin before the one before it is read: then the model computes while the caller handles tokens. Its inputs
are tokens that nobody knows yet, so a sequence that ends by one of them has read one token too many.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
from mlx_lm.utils import maybe_set_recommended_wired_limit

from inference.decoding.row import Choice, Row
from inference.decoding.sampling import Sampler
from inference.decoding.scores import PendingScores, normalised
from inference.decoding.verification import choose
from inference.speculation.options import SpeculationOptions
from inference.speculation.pace import Pace
from inference.speculation.rewinding import Rewinding, align, can_rewind

_SHORT_STEP_SECONDS = 0.005
"""On a CPU, steps that take longer don't overlap: what the caller does is little beside them, and a sequence that joins
would wait for a step that has begun.
"""
_WEIGHT = 0.1
"""The share of the latest step in the mean duration."""
_CLEARING_STEPS = 512
"""How often unused memory is given back."""


@dataclass(slots=True)
class _Step:
    """A step that has begun."""

    rows: list[Row]
    tokens: Any
    """The next token of each row."""
    scored: list[Row]
    scores: PendingScores | None


class Decoder:
    """After an error its state can't be trusted: close it, and resume its sequences in another one."""

    def __init__(self, model: Any, *, speculation: SpeculationOptions | None = None) -> None:
        self.rows: list[Row] = []
        self._model = model
        self._state: list[Any] = []
        """Of all rows, in their order."""
        self._ahead: _Step | None = None
        """It has begun, and is for the first rows, before those that have joined since."""
        self._sampler = Sampler([])
        self._pace = Pace(speculation) if speculation is not None else None
        self._can_rewind = self._waits = False
        self._is_background = mx.default_device().type != mx.DeviceType.cpu
        self._step_seconds = 0.0
        self._steps = 0
        self._old_wired_limit = maybe_set_recommended_wired_limit()

    def join(self, rows: Sequence[Row], state: list[Any], logits: Any = None) -> None:
        """Decode these rows too. state: of all of them, after all of their tokens but the last.

        Where there are no other rows, it may be that after all of their tokens, with the logits that follow: then the
        next step has their first tokens at once.
        """
        if self.rows:
            align(self._state)
            for layer, other in zip(self._state, state, strict=True):
                layer.extend(other)
        else:
            self._state = state
        for row in rows:
            row.begin()
        self._change([*self.rows, *rows])
        if logits is not None:
            self._ahead = self._begun(logits.astype(mx.float32), self._inputs(None))

    def leave(self, rows: Sequence[Row]) -> None:
        """Decode these rows no more, and give them their state."""
        leaving = set(rows)
        keep = []
        for place, row in enumerate(self.rows):
            if row in leaving:
                row.state = [layer.extract(place) for layer in self._state]
            else:
                keep.append(place)
        if not keep:
            self._state, self._ahead = [], None
        for layer in self._state:
            layer.filter(keep)
        if self._ahead is not None:
            begun = [place for place in keep if place < len(self._ahead.rows)]
            self._ahead.rows = [self._ahead.rows[place] for place in begun]
            self._ahead.tokens = self._ahead.tokens[mx.array(begun, dtype=mx.int32)]
            if not begun:
                self._ahead = None
        self._change([self.rows[place] for place in keep])

    def step(self) -> list[Choice]:
        """The next token of each row, or of each that has not just joined. A row may have several, in order."""
        if not self.rows:
            return []
        self._steps += 1
        if self._steps % _CLEARING_STEPS == 0:
            mx.clear_cache()
        if self._pace is None:
            return self._take_step()
        self._pace.begin(len(self.rows))
        drafts = None
        if self._ahead is None and self._can_rewind:
            drafts = self._pace.drafts([row.drafter for row in self.rows], [row.most - row.drawn for row in self.rows])
        return self._take_step() if drafts is None else self._verify(drafts, self._pace)

    def close(self) -> None:
        """It must not be used any more."""
        self.rows, self._state, self._ahead = [], [], None
        if self._old_wired_limit is not None:
            mx.synchronize()
            mx.set_wired_limit(self._old_wired_limit)
            self._old_wired_limit = None

    def _change(self, rows: list[Row]) -> None:
        """These are the rows from now on."""
        self.rows = rows
        self._sampler = Sampler([row.draw for row in rows])
        self._waits = any(getattr(processor, "waits", False) for row in rows for processor in row.processors)
        self._can_rewind = can_rewind(self._state)
        if self._pace is not None:
            self._pace.interrupt()

    # Without drafts

    def _take_step(self) -> list[Choice]:
        began = time.perf_counter()
        was_ahead = self._ahead is not None
        step = self._ahead or self._begin()
        self._ahead = self._begin(step) if self._looks_ahead(step) else None
        tokens: list[int] = step.tokens.tolist()
        scores = dict(zip(step.scored, step.scores.read(), strict=True)) if step.scores is not None else {}
        for row, token in zip(step.rows, tokens, strict=True):
            row.tokens.append(token)
            if row.drafter is not None:
                row.drafter.learn(token)
        self._measure(time.perf_counter() - began)
        if self._pace is not None:
            self._pace.end(is_steady=was_ahead == (self._ahead is not None))
        if not scores:
            return list(map(Choice, step.rows, tokens))
        return [Choice(row, token, scores.get(row)) for row, token in zip(step.rows, tokens, strict=True)]

    def _begin(self, before: _Step | None = None) -> _Step:
        """Begin to compute the next token of all rows. before: the step before, if it is not read yet."""
        inputs = self._inputs(before)
        return self._begun(self._logits(inputs[:, None])[:, -1], inputs)

    def _begun(self, logits: Any, inputs: Any) -> _Step:
        """Choose the next token of all rows. inputs: those before them."""
        rows = self.rows
        if any(row.processors for row in rows):
            logits = self._processed(logits, inputs)
        tokens = self._sampler(logits, [row.drawn for row in rows])
        scored = [row for row in rows if row.top_logprobs is not None]
        scores = None
        if scored:
            places = mx.array([place for place, row in enumerate(rows) if row.top_logprobs is not None])
            counts = [row.top_logprobs for row in scored if row.top_logprobs is not None]
            scores = PendingScores(normalised(logits[places]), tokens[places], counts)
        begin: Any = mx.async_eval
        # Contexts too: they would grow with every step that doesn't look at them.
        begin(tokens, scores.arrays if scores else (), [row.context.state for row in rows if row.processors])
        for row in rows:
            row.drawn += 1
            row.read += 1
        return _Step(rows, tokens, scored, scores)

    def _inputs(self, before: _Step | None) -> Any:
        """The latest token of each row."""
        rows = self.rows if before is None else self.rows[len(before.rows) :]
        known = mx.array([row.tokens[-1] for row in rows], dtype=mx.uint32)
        if before is None:
            return known
        return mx.concatenate([before.tokens, known]) if rows else before.tokens

    def _logits(self, tokens: Any) -> Any:
        """Logits (rows, tokens, vocabulary) after some tokens of each row.

        In float32 whatever the weights are: in 16 bits a small penalty is lost to rounding, and a row with a penalty
        would change its neighbours' rounding.
        """
        return self._model(tokens, cache=self._state).astype(mx.float32)

    def _processed(self, logits: Any, inputs: Any) -> Any:
        """The logits of all rows after the processors of each."""
        if self._waits:
            begin: Any = mx.async_eval
            begin(logits)  # while the masks are computed
        own = []
        for place, row in enumerate(self.rows):
            row_logits = logits[place : place + 1]
            if row.processors:
                context = row.context.update_and_fetch(inputs[place : place + 1])
                for processor in row.processors:
                    row_logits = processor(context, row_logits)
            own.append(row_logits)
        return mx.concatenate(own)

    def _looks_ahead(self, step: _Step) -> bool:
        """Whether the next step begins before this one is read: not over the first token of a row, which somebody waits
        for, nor over the last, after which the row leaves.
        """
        if self._waits or not (self._is_background or 0.0 < self._step_seconds < _SHORT_STEP_SECONDS):
            return False
        if any(row.drawn == 1 or row.drawn == row.most for row in step.rows):
            return False
        if self._pace is None or not self._can_rewind:
            return True
        left = [row.most - row.drawn + 1 for row in self.rows]
        return not self._pace.is_worth_waiting([row.drafter for row in self.rows], left)

    def _measure(self, seconds: float) -> None:
        before = self._step_seconds
        self._step_seconds = before + _WEIGHT * (seconds - before) if before else seconds

    # With drafts

    def _verify(self, drafts: list[list[int]], pace: Pace) -> list[Choice]:
        """Run the model once over the latest token and the draft of each row."""
        rows, length = self.rows, max(map(len, drafts))
        inputs = [
            [row.tokens[-1], *draft, *[row.tokens[-1]] * (length - len(draft))]
            for row, draft in zip(rows, drafts, strict=True)
        ]
        rewinding = Rewinding(self._state)
        chosen = choose(self._logits(mx.array(inputs, dtype=mx.uint32)), rows, drafts)
        for row, own, draft in zip(rows, chosen, drafts, strict=True):
            tokens = [choice.token for choice in own]
            row.tokens += tokens
            row.drawn += len(own)
            row.read += len(own)
            if row.drafter is not None:
                row.drafter.drafted += len(draft)
                row.drafter.accepted += len(own) - 1
                for token in tokens:
                    row.drafter.learn(token)
        counts = [len(own) for own in chosen]
        rewinding.take_back(
            [length + 1 - count for count in counts],
            tokens=[row.tokens[-count - 1 : -1] for row, count in zip(rows, counts, strict=True)],
            read=self._read,
        )
        pace.end(draft_length=length)
        return [choice for own in chosen for choice in own]

    def _read(self, tokens: list[int]) -> None:
        self._model(mx.array([tokens]), cache=self._state)
        mx.eval([layer.state for layer in self._state])
