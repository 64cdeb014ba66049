"""The events of responses that have ended, for readers that missed the end."""

import threading
import time
from collections import OrderedDict

from responses_api.worker.generation.told_events import ToldEvents

KEPT_BYTES = 16 << 20
"""Of all that have ended, in the memory of this process."""


class EndedStreams:
    """Keeps them for ``seconds``, in which a reader has looked at the database twice, and no more than ``KEPT_BYTES``.

    Of a generation itself, its request and its prompt, nothing is kept.
    """

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[float, ToldEvents]] = OrderedDict()
        self._memory = 0

    def __contains__(self, public_id: str) -> bool:
        return public_id in self._kept

    @property
    def memory(self) -> int:
        """Bytes of memory that are kept."""
        return self._memory

    def keep(self, public_id: str, told: ToldEvents) -> None:
        """A response has ended; nothing is added to ``told`` any more."""
        with self._lock:
            self._drop(public_id)
            self._kept[public_id] = (time.monotonic(), told)
            self._memory += told.memory
            while self._memory > KEPT_BYTES:
                self._drop(next(iter(self._kept)))

    def find(self, public_id: str) -> ToldEvents | None:
        """What a reader of this response was told, if it is kept still."""
        with self._lock:
            found = self._kept.get(public_id)
        return found[1] if found is not None else None

    def forget_old(self) -> None:
        """Drop what nobody is going to ask for any more."""
        limit = time.monotonic() - self._seconds
        with self._lock:
            while self._kept:
                public_id, (ended, _) = next(iter(self._kept.items()))
                if ended > limit:
                    return
                self._drop(public_id)

    def _drop(self, public_id: str) -> None:
        found = self._kept.pop(public_id, None)
        if found is not None:
            self._memory -= found[1].memory
