"""How long a pass that verifies drafts takes, compared with a step that generates one token. Standard library only.

A step reads all weights from memory for a single token of each sequence, so a pass over several tokens costs little
more, but how much depends on machine, model and batch. It is measured, per number of sequences and tokens.
"""

DRAFT_LENGTHS = (1, 3, 7, 15, 31)
"""Lengths between which the cost of a pass is not distinguished; with the token before them they are powers of two."""
LONGEST_DRAFT = DRAFT_LENGTHS[-1]
_EXPECTED_COSTS = dict(zip(DRAFT_LENGTHS, (1.2, 1.35, 1.5, 1.9, 2.6), strict=True))
"""The costs before any pass was measured, in steps; about those of a CPU with one sequence."""
_STEP_WEIGHT, _PASS_WEIGHT = 0.1, 0.25
"""The share of the latest measurement in the mean."""
_LARGEST_CHANGE = 2.0
"""A measurement counts at most this many times the mean: what interrupted a single pass says little about the next."""
_FORGOTTEN_AFTER = 64
"""Steps without a pass after which the measured costs count half: what was slow on a busy machine is tried again."""
MARGIN = 0.05
"""The least gain that is worth a pass: the step after it can't overlap with it."""


class PassCosts:
    """Measured durations, for one number of sequences."""

    def __init__(self) -> None:
        self._step_seconds = 0.0
        self._costs = dict(_EXPECTED_COSTS)
        self._unused_steps = 0

    def cost(self, draft_length: int) -> float:
        """The duration of a pass over this many drafted tokens per sequence, at least 1, in steps."""
        return self._costs[_class_of(draft_length)]

    def measure_step(self, seconds: float) -> None:
        """Count a step that generated one token per sequence."""
        if self._step_seconds:
            change = min(seconds, _LARGEST_CHANGE * self._step_seconds) - self._step_seconds
            self._step_seconds += _STEP_WEIGHT * change
        else:
            self._step_seconds = seconds
        self._unused_steps += 1
        if self._unused_steps >= _FORGOTTEN_AFTER:
            self._unused_steps = 0
            for length, expected in _EXPECTED_COSTS.items():
                self._costs[length] += 0.5 * (expected - self._costs[length])

    def measure_pass(self, draft_length: int, seconds: float) -> None:
        """Count a pass over this many drafted tokens per sequence."""
        self._unused_steps = 0
        if self._step_seconds:
            length = _class_of(draft_length)
            known = self._costs[length]
            cost = max(1.0, min(seconds / self._step_seconds, _LARGEST_CHANGE * known))
            self._costs[length] += _PASS_WEIGHT * (cost - known)

    def best_length(self, expected: list[list[float]]) -> int:
        """How many drafted tokens per sequence to verify so that the most tokens are generated per second; 0: none.

        `expected` has, for each sequence, `Acceptance.expected_tokens` of its draft.
        """
        longest = max(map(len, expected)) - 1
        best, best_gain = 0, 1 + MARGIN
        for length in sorted({*(length for length in DRAFT_LENGTHS if length < longest), longest}):
            if length:
                tokens = sum(counts[min(length, len(counts) - 1)] for counts in expected)
                gain = tokens / len(expected) / self.cost(length)
                if gain > best_gain:
                    best, best_gain = length, gain
        return best


def _class_of(draft_length: int) -> int:
    return next((length for length in DRAFT_LENGTHS if draft_length <= length), LONGEST_DRAFT)
