"""Memory for what requests multiply: stored histories, referenced items, unpacked blobs, pages of items.

Their bytes are known before they are read. A process reads so many at once and no more; one owner (see `cache_scope`)
has half of that for requests that run side by side.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from responses_api.counting import STORE_REFUSALS, count
from responses_api.errors import Overloaded, RequestTooLarge

OWNERS_SHARE = 2
"""An owner who reads something already may come to the budget's half."""


class Budget:
    """Bytes of one kind that a process holds, by their owners."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()

    def take(self, owner: str, size: int, *, own: int, limit: int) -> bool:
        """Take ``size`` bytes for a request that holds ``own`` of its owner's already; False when there is no room."""
        with self._lock:
            others = self._held[owner] - own
            share = limit if not others else limit // OWNERS_SHARE
            if self._held.total() + size > limit or others + own + size > share:
                return False
            self._held[owner] += size
            return True

    def give_back(self, owner: str, size: int) -> None:
        with self._lock:
            self._held[owner] -= size
            if not self._held[owner]:
                del self._held[owner]

    def size(self) -> int:
        with self._lock:
            return self._held.total()


READING = Budget()
"""Histories that are read and rendered: for as long as that takes."""
COMPACTING = Budget()
"""Histories that are compacted: for as long as their summaries are generated."""


class Assembly:
    """What one request reads. Made by :func:`assembling`, which gives all of it back."""

    def __init__(self, owner: str, budget: Budget = READING) -> None:
        self.owner = owner
        self.size = 0
        self._budget = budget

    def add(self, size: int) -> None:
        """Take so many bytes, before they are read. Raises :class:`RequestTooLarge` or :class:`Overloaded`."""
        if not size:
            return
        self.expect(size)
        if not self._budget.take(self.owner, size, own=self.size, limit=settings.RESPONSES_ASSEMBLY_MAX_BYTES):
            count(STORE_REFUSALS)
            raise Overloaded("The server reads as many histories as it has memory for. Try again in a few seconds.")
        self.size += size

    def expect(self, size: int) -> None:
        """Raise :class:`RequestTooLarge` when so many bytes more could never be read for this request."""
        limit = settings.RESPONSES_ASSEMBLY_MAX_BYTES
        if not size or self.size + size <= limit:
            return
        count(STORE_REFUSALS)
        raise RequestTooLarge(
            f"The history, with the items that references name and what compaction items hold, has {self.size + size} "
            f"bytes, and this server reads no more than {limit} for one request (RESPONSES_ASSEMBLY_MAX_BYTES). Begin "
            "without a history or with a compacted one, or send fewer references.",
            param="input",
        )

    def give_back(self) -> None:
        """Nothing of it is held any more."""
        if self.size:
            self._budget.give_back(self.owner, self.size)
        self.size = 0


@contextmanager
def assembling(owner: str) -> Iterator[Assembly]:
    """Read for a request of ``owner``: what is added is held until the block ends."""
    assembly = Assembly(owner)
    try:
        yield assembly
    finally:
        assembly.give_back()


def bytes_in_flight() -> int:
    """The bytes of histories that this process holds at the moment."""
    return READING.size() + COMPACTING.size()
