"""Decides, from what was measured, when a pass that verifies drafts replaces a step. Standard library only.

Where steps overlap, the next one begins before the token of the one before is known. A draft for it could only be made
after that token, and waiting for it costs the overlap. So a step waits only if a draft is probably worth it.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from inference.speculation.acceptance import DraftToken
from inference.speculation.drafter import Drafter
from inference.speculation.options import SpeculationOptions
from inference.speculation.pass_costs import PassCosts

Drafters = Sequence[Drafter | None]
"""Of all sequences of a batch; None for one that nothing is drafted for."""


@dataclass(slots=True)
class _Latest:
    """The latest step or pass, until the next one begins."""

    rows: int
    began: float
    draft_length: int = 0
    is_steady: bool = False


class Pace:
    """The drafts of one batch. Call `begin` and `end` around each step and each pass."""

    def __init__(self, options: SpeculationOptions) -> None:
        self._options = options
        self._costs: dict[int, PassCosts] = {}
        """By number of sequences."""
        self._latest: _Latest | None = None

    def begin(self, rows: int) -> None:
        """A step or a pass begins; the one before is measured to here, with what the caller did since."""
        latest, now = self._latest, time.perf_counter()
        if latest is not None and latest.rows == rows:
            costs, seconds = self._costs_of(rows), now - latest.began
            if latest.draft_length:
                costs.measure_pass(latest.draft_length, seconds)
            elif latest.is_steady:
                costs.measure_step(seconds)
        self._latest = _Latest(rows, now)

    def end(self, *, draft_length: int = 0, is_steady: bool = False) -> None:
        """A pass over drafts of this length has ended, or a step. is_steady: it overlapped as much as the next one."""
        if self._latest is not None:
            self._latest.draft_length, self._latest.is_steady = draft_length, is_steady

    def interrupt(self) -> None:
        """Sequences have come or gone: the latest step is not measured."""
        self._latest = None

    def drafts(self, drafters: Drafters, left: Sequence[int]) -> list[list[int]] | None:
        """Drafts to verify, perhaps none for some sequences; None if a step is faster.

        left: how many tokens each sequence may still choose.
        """
        if not self._is_wanted(drafters):
            return None
        drafts = _drafts(drafters, [count - 1 for count in left])
        length = self._costs_of(len(drafters)).best_length(_expected(drafters, drafts))
        return [[token for token, _ in draft[:length]] for draft in drafts] if length else None

    def is_worth_waiting(self, drafters: Drafters, left: Sequence[int]) -> bool:
        """Whether drafts would pay that begin with the tokens that are being computed, which `left` counts."""
        if not self._is_wanted(drafters):
            return False
        expected = []
        for counts in _expected(drafters, _drafts(drafters, left)):
            if len(counts) > 1:
                rate = counts[1] - counts[0]
                counts = [count - rate for count in counts[1:]]
            expected.append(counts)
        return self._costs_of(len(drafters)).best_length(expected) > 0

    def _is_wanted(self, drafters: Drafters) -> bool:
        return len(drafters) <= self._options.sequences and any(drafters)

    def _costs_of(self, rows: int) -> PassCosts:
        return self._costs.setdefault(rows, PassCosts())


def _drafts(drafters: Drafters, limits: Sequence[int]) -> list[list[DraftToken]]:
    return [[] if drafter is None else drafter.draft(limit) for drafter, limit in zip(drafters, limits, strict=True)]


def _expected(drafters: Drafters, drafts: Sequence[Sequence[DraftToken]]) -> list[list[float]]:
    return [
        [1.0] if drafter is None else drafter.acceptance.expected_tokens(draft)
        for drafter, draft in zip(drafters, drafts, strict=True)
    ]
