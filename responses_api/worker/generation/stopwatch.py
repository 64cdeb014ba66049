"""The database's time on a worker, whose own clock may be wrong, without further queries."""

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
        self._started = time.monotonic()
        self._created_at = row.created_at
        self.first_token_ms: int | None = None
        """Time from the request to the first token; ``None`` before, or if another worker generated that token."""

    def now(self) -> datetime:
        """The current time, with its zone."""
        return self._claimed_at + timedelta(seconds=time.monotonic() - self._started)

    def note(self, answer: Answer) -> None:
        """Record the time of the first token, if the answer has it now."""
        if self.first_token_ms is None and answer.counts.output:
            self.first_token_ms = max(0, round((self.now() - self._created_at).total_seconds() * 1000))
