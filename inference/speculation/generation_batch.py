"""mlx-lm's batch of generating sequences, with passes that verify drafts where they save time.

A step of mlx-lm's batch computes the next token of each sequence while the caller handles the one before. Whether a
draft continues a sequence is known only after the token that is being computed, and waiting for it costs the overlap.
So a step waits only if a draft is probably worth it, or if a constraint waits anyway. Else it is mlx-lm's, unchanged.
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
from mlx_lm.generate import BatchGenerator, GenerationBatch

from inference.speculation.acceptance import DraftToken
from inference.speculation.drafter import Drafter, Guide
from inference.speculation.options import SpeculationOptions
from inference.speculation.pass_costs import PassCosts
from inference.speculation.rewinding import Rewinding, align, can_rewind
from inference.speculation.verification import Chosen, DraftedRow, choose


@dataclass(slots=True)
class _Step:
    """The latest step, until the next one begins."""

    began: float
    rows: int
    draft_length: int = 0
    is_overlapped: bool = False
    """The step before it had begun to compute its token."""


class SpeculatingBatch(GenerationBatch):
    """A GenerationBatch whose `next` may return several responses for one sequence, in order."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._options = SpeculationOptions()
        self._drafters: dict[int, Drafter] = {}
        self._known: list[int | None] = [None] * len(self.uids)
        """For each sequence, the token that the next step returns, once it is known here and to the drafter."""
        self._costs: dict[int, PassCosts] = {}
        """By number of sequences."""
        self._last: _Step | None = None

    @classmethod
    def attach_to(cls, generator: BatchGenerator, options: SpeculationOptions) -> "SpeculatingBatch":
        """Make a new generator use such a batch."""
        batch: SpeculatingBatch = cls.empty(generator.model, generator.sampler)
        batch._options = options
        generator._generation_batch = batch
        return batch

    def watch(
        self, uid: int, tokens: Sequence[int], *, stop_tokens: Collection[int], guide: Guide | None = None
    ) -> Drafter:
        """Draft for this sequence until it leaves the batch. tokens: prompt and answer so far."""
        drafter = Drafter(tokens, stop_tokens=stop_tokens, longest=self._options.draft_tokens, guide=guide)
        self._drafters[uid] = drafter
        return drafter

    def forget(self, uid: int) -> None:
        """Draft no more for this sequence, which may leave before it has generated anything."""
        self._drafters.pop(uid, None)

    def next(self) -> list[Any]:
        if not self.uids:
            return []
        self._measure()
        began = time.perf_counter()
        drafts = self._worthwhile_drafts() if len(self.uids) <= self._options.sequences else None
        return self._take_step(began) if drafts is None else self._verify(drafts)

    def extend(self, batch: GenerationBatch) -> None:
        align(self.prompt_cache)
        parent: Any = super()
        parent.extend(batch)
        self._known += [None] * (len(self.uids) - len(self._known))
        self._last = None

    def filter(self, keep: list[int]) -> None:
        kept = set(keep)
        for row, uid in enumerate(self.uids):
            if row not in kept:
                self._drafters.pop(uid, None)
        super().filter(keep)
        self._known = [self._known[row] for row in keep]
        self._last = None

    # Without drafts

    def _take_step(self, began: float) -> list[Any]:
        known, self._known = self._known, [None] * len(self.uids)
        drafters = [self._drafters.get(uid) for uid in self.uids]
        step = _Step(began, len(known), is_overlapped=self._last is not None and not self._last.draft_length)
        responses: list[Any] = super().next()
        for drafter, token, response in zip(drafters, known, responses, strict=True):
            if drafter is not None and token is None:
                drafter.learn(response.token)
        if len(self.uids) == step.rows:
            self._last = step
        return responses

    def _measure(self) -> None:
        """Measure the latest step, to its end and what the caller did since."""
        last = self._last
        if last is not None and last.rows == len(self.uids):
            costs, seconds = self._costs_here(), time.perf_counter() - last.began
            if last.draft_length:
                costs.measure_pass(last.draft_length, seconds)
            elif last.is_overlapped:
                costs.measure_step(seconds)

    def _costs_here(self) -> PassCosts:
        return self._costs.setdefault(len(self.uids), PassCosts())

    # With drafts

    def _worthwhile_drafts(self) -> list[list[DraftToken]] | None:
        """Drafts to verify, perhaps none for some sequences; None if a step without drafts is faster."""
        drafters = [self._drafters.get(uid) for uid in self.uids]
        if not any(drafters) or not can_rewind(self.prompt_cache):
            return None
        if None in self._known:
            is_guided = any(drafter is not None and drafter.guide is not None for drafter in drafters)
            if not is_guided and not self._is_worth_waiting(drafters):
                return None
            self._learn_next()
        drafts = self._drafts(drafters)
        length = self._costs_here().best_length(
            [_expected(drafter, draft) for drafter, draft in zip(drafters, drafts, strict=True)]
        )
        return [draft[:length] for draft in drafts] if length else None

    def _is_worth_waiting(self, drafters: Sequence[Drafter | None]) -> bool:
        """Whether drafts would pay that begin with the tokens that are being computed."""
        drafts = self._drafts(drafters)
        expected = []
        for drafter, draft, known in zip(drafters, drafts, self._known, strict=True):
            counts = _expected(drafter, draft)
            if known is None and draft:
                rate = counts[1] - counts[0]
                counts = [count - rate for count in counts[1:]]
            expected.append(counts)
        return self._costs_here().best_length(expected) > 0

    def _learn_next(self) -> None:
        """Wait for the tokens that are being computed."""
        tokens: Any = self._next_tokens.tolist()
        for uid, token, known in zip(self.uids, tokens, self._known, strict=True):
            if known is None and uid in self._drafters:
                self._drafters[uid].learn(token)
        self._known = list(tokens)

    def _drafts(self, drafters: Sequence[Drafter | None]) -> list[list[DraftToken]]:
        drafts: list[list[DraftToken]] = []
        for row, drafter in enumerate(drafters):
            known = self._known[row]
            left = self.max_tokens[row] - self._num_tokens[row]
            limit = left if known is None else left - 1
            drafts.append([] if drafter is None else drafter.draft(limit, last=known))
        return drafts

    def _verify(self, drafts: list[list[DraftToken]]) -> list[Any]:
        length = max(map(len, drafts))
        step = _Step(time.perf_counter(), len(self.uids), length)
        rows = [self._drafted_row(row, [token.token for token in draft]) for row, draft in enumerate(drafts)]
        inputs = [[row.last, *row.draft, *([row.last] * (length - len(row.draft)))] for row in rows]
        rewinding = Rewinding(self.prompt_cache)
        logits = self.model(mx.array(inputs, dtype=mx.uint32), cache=self.prompt_cache)
        chosen = choose(logits, rows)
        responses, counts = self._accept(rows, chosen)
        rewinding.take_back(
            [length + 1 - count for count in counts],
            tokens=[tokens[-count:] for tokens, count in zip(self.tokens, counts, strict=True)],
            read=self._read,
        )
        self._leave_finished(responses)
        if len(self.uids) == step.rows:
            self._last = step
        return responses

    def _drafted_row(self, row: int, draft: list[int]) -> DraftedRow:
        drafter, last = self._drafters.get(self.uids[row]), self._known[row]
        batch: Any = self
        context = batch._token_context[row]
        assert last is not None
        guide = drafter.guide if drafter is not None else None
        return DraftedRow(
            last=last,
            draft=draft,
            sampler=batch.samplers[row],
            processors=batch.logits_processors[row],
            add_context=lambda token: context.update_and_fetch(mx.array([token])),
            has_ended=(lambda: False) if guide is None else (lambda: guide.has_ended),
        )

    def _accept(self, rows: Sequence[DraftedRow], chosen: Sequence[Chosen]) -> tuple[list[Any], list[int]]:
        """The responses of a pass, without the state of those that end, and how many of its tokens each row keeps."""
        responses, counts = [], []
        for row, (drafted, (tokens, logprobs)) in enumerate(zip(rows, chosen, strict=True)):
            count = 0
            for token, token_logprobs in zip(
                [drafted.last, *tokens[:-1]], [self._next_logprobs[row], *logprobs[:-1]], strict=True
            ):
                count += 1
                self._num_tokens[row] += 1
                finish = "length" if self._num_tokens[row] >= self.max_tokens[row] else None
                finish = "stop" if self._matchers[row].advance(token) else finish
                self.tokens[row].append(token)
                responses.append(self.Response(self.uids[row], token, token_logprobs, finish, None, None))
                if finish is not None:
                    break
            counts.append(count)
            drafter = self._drafters.get(self.uids[row])
            if drafter is not None:
                drafter.drafted += len(drafted.draft)
                drafter.accepted += count - 1
                for token in tokens:
                    drafter.learn(token)
        self._known = [tokens[-1] for tokens, _ in chosen]
        self._next_tokens = mx.array(self._known, dtype=mx.uint32)
        self._next_logprobs = [logprobs[-1] for _, logprobs in chosen]
        return responses, counts

    def _read(self, tokens: list[int]) -> None:
        self.model(mx.array([tokens]), cache=self.prompt_cache)
        mx.eval([layer.state for layer in self.prompt_cache])

    def _leave_finished(self, responses: Sequence[Any]) -> None:
        """Give the responses that end their state, and drop their rows."""
        keep = list(range(len(self.uids)))
        for response in responses:
            if response.finish_reason is not None:
                row = self.uids.index(response.uid)
                response.prompt_cache, response.all_tokens = self.extract_cache(row), self.tokens[row]
                keep.remove(row)
        if len(keep) < len(self.uids):
            self.filter(keep)


def _expected(drafter: Drafter | None, draft: Sequence[DraftToken]) -> list[float]:
    return [1.0] if drafter is None else drafter.acceptance.expected_tokens(draft)
