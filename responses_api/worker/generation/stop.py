"""The reason to end a run early."""

import threading

from responses_api.errors import NO_RETRY, Overloaded, ServerError
from responses_api.interruptions import FAILED, StopReason


class Stop:
    """A run's reason to end early, if it has one. Any thread may give one; only the first counts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reason: StopReason | None = None

    @property
    def reason(self) -> StopReason | None:
        """The first reason, if any."""
        return self._reason

    def give(self, reason: StopReason) -> None:
        """Record a reason; the run checks for it between its steps."""
        with self._lock:
            self._reason = self._reason or reason

    @property
    def sentence(self) -> str:
        """The message for the client of a run that has ended early."""
        return self._reason.sentence if self._reason is not None else FAILED

    def error(self) -> ServerError:
        """The error for the client. After a timeout it says not to retry, since the next run would take too long as
        well.
        """
        if self._reason is StopReason.NOT_LOADED:
            return Overloaded(self.sentence)
        return ServerError(self.sentence, headers=NO_RETRY if self._reason is StopReason.TIMEOUT else None)
