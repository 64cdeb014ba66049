"""The pause before an engine that failed is started again."""

import time
from collections.abc import Callable

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 60.0
HEALTHY_SECONDS = 60.0
"""An engine that ran for so long before it failed is started as if it had never failed."""


class RestartBackoff:
    """The first restart is immediate; each failure that soon follows another doubles the pause, up to a minute.

    ``clock`` returns seconds. Calls are made by one thread at a time; ``remaining`` may be read by any.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._started_at: float | None = None
        self._until = 0.0

    @property
    def remaining(self) -> float:
        """Seconds until the engine may be started; 0 if it may be started now."""
        return max(0.0, self._until - self._clock()) if self._failures else 0.0

    def note_start(self) -> None:
        """The engine has started."""
        self._started_at = self._clock()

    def note_failure(self) -> None:
        """The engine has stopped by itself, or could not be started."""
        now = self._clock()
        if self._started_at is not None and now - self._started_at >= HEALTHY_SECONDS:
            self._failures = 0
        self._started_at = None
        self._failures += 1
        pause = 0.0 if self._failures == 1 else FIRST_SECONDS * 2.0 ** min(self._failures - 2, 16)
        self._until = now + min(pause, LONGEST_SECONDS)
