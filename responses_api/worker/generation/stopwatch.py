"""The database's time on a worker, whose own clock may be wrong, without asking for it again."""

import time
from datetime import UTC, datetime, timedelta

from responses_api.models import Response
from responses_api.streaming import Answer


class Stopwatch:
    """Counts from the time at which the database claimed a row, which SQLite returns as text."""

    def __init__(self, row: Response) -> None:
        claimed_at: datetime | str = row.claimed_at  # type: ignore[attr-defined]  # the claim has added it
        if isinstance(claimed_at, str):
            claimed_at = datetime.fromisoformat(claimed_at).replace(tzinfo=UTC)
        self._claimed_at = claimed_at
        self._heard = time.monotonic()
        self._created_at = row.created_at
        self.first_token_ms: int | None = None
        """From the request to the first token of its answer; ``None`` before, or where another worker made that."""

    def now(self) -> datetime:
        """The time, with its zone."""
        return self._claimed_at + timedelta(seconds=time.monotonic() - self._heard)

    def note(self, answer: Answer) -> None:
        """The answer may have its first token now."""
        if self.first_token_ms is None and answer.counts.output:
            self.first_token_ms = max(0, round((self.now() - self._created_at).total_seconds() * 1000))
