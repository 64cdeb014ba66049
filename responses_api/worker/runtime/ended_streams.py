"""The events of responses that have ended, for readers that missed the end."""

import threading
import time
from collections import OrderedDict

from responses_api.worker.generation.published_events import PublishedEvents

BUFFER_BYTES = 16 << 20
"""Of all that have ended, in the memory of this process."""


class EndedStreams:
    """Has them for ``seconds``, in which a reader looks at the database twice, and at most ``BUFFER_BYTES`` of them.

    Nothing of the run itself, its request or its prompt stays in memory.
    """

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._ended: OrderedDict[str, tuple[float, PublishedEvents]] = OrderedDict()
        self._memory = 0

    def __contains__(self, public_id: str) -> bool:
        return public_id in self._ended

    @property
    def memory(self) -> int:
        """Bytes of memory that they take."""
        return self._memory

    def add(self, public_id: str, published: PublishedEvents) -> None:
        """A response has ended; nothing more is published of it."""
        with self._lock:
            self._drop(public_id)
            self._ended[public_id] = (time.monotonic(), published)
            self._memory += published.memory
            while self._memory > BUFFER_BYTES:
                self._drop(next(iter(self._ended)))

    def find(self, public_id: str) -> PublishedEvents | None:
        """What was published of this response, if that is still here."""
        with self._lock:
            entry = self._ended.get(public_id)
        return entry[1] if entry is not None else None

    def forget_old(self) -> None:
        """Drop what nobody is going to ask for any more."""
        limit = time.monotonic() - self._seconds
        with self._lock:
            while self._ended:
                public_id, (ended, _) = next(iter(self._ended.items()))
                if ended > limit:
                    return
                self._drop(public_id)

    def _drop(self, public_id: str) -> None:
        entry = self._ended.pop(public_id, None)
        if entry is not None:
            self._memory -= entry[1].memory
