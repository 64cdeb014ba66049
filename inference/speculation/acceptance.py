"""How often drafted tokens of one sequence are right. Pure, standard library only.

What predicts this is the length of the match that a draft comes from, so each length has a rate of its own. The rates
are measured whether anything is drafted or not: each token that the model chooses shows what a draft would have been
worth. So a sequence begins to speculate as soon as it repeats something, and stops when it no longer does.
"""

from collections.abc import Sequence
from typing import NamedTuple

from inference.speculation.history import LONG_MATCH, SHORTEST_MATCH

FORCED = 0
"""The evidence of a token that the constraint forces. Others have the length of their match, at most LONG_MATCH."""
_EXPECTED_RATES = {FORCED: 0.9, 2: 0.35, 3: 0.5, 4: 0.65, 5: 0.7, 6: 0.75, 7: 0.8, LONG_MATCH: 0.9}
"""The rates of a sequence that has not been measured: about those of the default model in chats, code and JSON."""
_PRIOR_WEIGHT = 4.0
"""How many tokens the expected rates count as."""
_DECAY = 0.97
"""What an earlier token counts when a later one with the same evidence is measured."""


class DraftToken(NamedTuple):
    """A token that is expected, and the evidence for it."""

    token: int
    evidence: int


def evidence_of(match_length: int) -> int:
    """The evidence of a token after a match of this length, at least SHORTEST_MATCH."""
    return max(SHORTEST_MATCH, min(LONG_MATCH, match_length))


class Acceptance:
    """The rates of one sequence, by evidence."""

    def __init__(self) -> None:
        self._right = {evidence: rate * _PRIOR_WEIGHT for evidence, rate in _EXPECTED_RATES.items()}
        self._seen = dict.fromkeys(_EXPECTED_RATES, _PRIOR_WEIGHT)

    def rate(self, evidence: int) -> float:
        """The probability that a drafted token is right if those before it are."""
        return self._right[evidence] / self._seen[evidence]

    def measure(self, evidence: int, *, is_right: bool) -> None:
        """Count a token that was expected, drafted or not."""
        self._right[evidence] = self._right[evidence] * _DECAY + is_right
        self._seen[evidence] = self._seen[evidence] * _DECAY + 1

    def expected_tokens(self, draft: Sequence[DraftToken]) -> list[float]:
        """How many tokens a pass yields, by how many of the draft's tokens it has: none, one, and so on."""
        total, probability = 1.0, 1.0
        expected = [total]
        for token in draft:
            probability *= self.rate(token.evidence)
            total += probability
            expected.append(total)
        return expected
