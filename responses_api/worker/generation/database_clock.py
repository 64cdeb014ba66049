"""The database's time on a worker, whose own clock may be wrong, without asking for it again."""

import time
from datetime import UTC, datetime, timedelta


class DatabaseClock:
    """Goes on from what the database said, by the time that has passed since. SQLite says it as text."""

    def __init__(self, said: datetime | str) -> None:
        self._said = datetime.fromisoformat(said).replace(tzinfo=UTC) if isinstance(said, str) else said
        self._heard = time.monotonic()

    def now(self) -> datetime:
        """The time, with its zone."""
        return self._said + timedelta(seconds=time.monotonic() - self._heard)
