"""Drafts the next tokens of one sequence: what its constraint forces, and what followed the same tokens before."""

from collections import deque
from collections.abc import Collection, Sequence
from typing import Protocol

from inference.speculation.acceptance import FORCED, Acceptance, DraftToken, evidence_of
from inference.speculation.history import TokenHistory


class Guide(Protocol):
    """The constraint of a sequence, as far as drafts need it."""

    @property
    def has_ended(self) -> bool:
        """Nothing may follow, or the constraint has failed."""

    @property
    def is_fast(self) -> bool:
        """It can be asked about drafts without delaying other sequences."""

    def forced(self) -> list[int]:
        """The tokens that spell what must follow; often none."""

    def count_allowed(self, tokens: Sequence[int]) -> int:
        """How many of the tokens, from the first, may follow."""


class Drafter:
    """The drafts of one sequence, and how good they have been."""

    def __init__(
        self, tokens: Sequence[int], *, stop_tokens: Collection[int], longest: int, guide: Guide | None = None
    ) -> None:
        """tokens: prompt and answer so far. stop_tokens: those that end an answer; they are not drafted."""
        self.acceptance = Acceptance()
        self.guide = guide
        """The constraint."""
        self.drafted = 0
        """Tokens that were verified."""
        self.accepted = 0
        """Those of them that the model chose."""
        self._history = TokenHistory(tokens)
        self._stop_tokens, self._longest = stop_tokens, longest
        self._expected: deque[DraftToken] = deque()

    def learn(self, token: int) -> None:
        """Take the next token that the model chose, and count whether it was expected."""
        if self._expected:
            expected = self._expected.popleft()
            is_right = expected.token == token
            self.acceptance.measure(expected.evidence, is_right=is_right)
            if not is_right:
                self._expected.clear()
        self._history.extend((token,))

    @property
    def has_ended(self) -> bool:
        """The constraint lets nothing follow, or has failed."""
        return self.guide is not None and self.guide.has_ended

    def draft(self, limit: int) -> list[DraftToken]:
        """The tokens that are expected next, at most `limit`. A constraint has taken all that were learnt."""
        draft = self._proposed(min(limit, self._longest))
        self._expected = deque(draft)
        return draft

    def _proposed(self, limit: int) -> list[DraftToken]:
        if limit < 1:
            return []
        if self.guide is None:
            return self._looked_up(limit)
        if self.guide.has_ended or not self.guide.is_fast:
            return []
        draft = self._looked_up(limit)
        draft = draft[: self.guide.count_allowed([token for token, _ in draft])] if draft else []
        forced = self.guide.forced()[:limit]
        if len(forced) <= len(draft):
            return draft
        self._history.extend(forced)
        draft = [*(DraftToken(token, FORCED) for token in forced), *self._looked_up(limit - len(forced))]
        self._history.truncate(len(self._history) - len(forced))
        return draft[: self.guide.count_allowed([token for token, _ in draft])]

    def _looked_up(self, limit: int) -> list[DraftToken]:
        """The tokens after an earlier match, before the first stop token."""
        match = self._history.match() if limit else None
        if match is None:
            return []
        draft: list[DraftToken] = []
        for number, token in enumerate(self._history.following(match, limit)):
            if token in self._stop_tokens:
                break
            draft.append(DraftToken(token, evidence_of(match.length + number)))
        return draft
