"""The events of ended responses, for readers that missed the end."""

import threading
import time
from collections import OrderedDict

from responses_api.worker.generation.published_events import PublishedEvents

BUFFER_BYTES = 16 << 20
"""Most bytes of events of ended responses."""


class EndedStreams:
    """Keeps them for ``seconds``, in which a reader checks the database twice, and at most ``BUFFER_BYTES`` of them.

    Nothing else of the run, such as its request or prompt, stays in memory.
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
        """Bytes of these events in memory."""
        return self._memory

    def add(self, public_id: str, published: PublishedEvents) -> None:
        """A response has ended: keep its published events."""
        with self._lock:
            self._drop(public_id)
            self._ended[public_id] = (time.monotonic(), published)
            self._memory += published.memory
            while self._memory > BUFFER_BYTES:
                self._drop(next(iter(self._ended)))

    def find(self, public_id: str) -> PublishedEvents | None:
        """The published events of this response, if they are still kept."""
        with self._lock:
            entry = self._ended.get(public_id)
        return entry[1] if entry is not None else None

    def forget_old(self) -> None:
        """Drop events that no reader will ask for any more."""
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
