"""Why a run is to end early."""

import threading

from responses_api.errors import NO_RETRY, ServerError
from responses_api.interruptions import FAILED, StopReason


class Stop:
    """A run's reason to end early, if it has one. Any thread may give one; the first counts, and stays."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reason: StopReason | None = None

    @property
    def reason(self) -> StopReason | None:
        """The first reason that was given."""
        return self._reason

    def give(self, reason: StopReason) -> None:
        """Whoever runs it sees this between its steps."""
        with self._lock:
            self._reason = self._reason or reason

    @property
    def sentence(self) -> str:
        """What a client reads about a run that has ended early."""
        return self._reason.sentence if self._reason is not None else FAILED

    def error(self) -> ServerError:
        """The same as an error. What took too long once would take too long again."""
        return ServerError(self.sentence, headers=NO_RETRY if self._reason is StopReason.TIMEOUT else None)
