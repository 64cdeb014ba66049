"""Limits the memory for data that small requests can multiply: histories, referenced items, unpacked blobs, pages.

Its size is known before it is read. A process reads at most RESPONSES_ASSEMBLY_MAX_BYTES at once, of which one owner
(see `cache_scope`) gets half for concurrent requests.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from responses_api.counting import STORE_REFUSALS, count
from responses_api.errors import Overloaded, RequestTooLarge

OWNER_DIVISOR = 2
"""An owner with several concurrent requests gets the budget divided by this."""


class Budget:
    """Bytes of one kind that a process has in memory, by owner."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: Counter[str] = Counter()

    def take(self, owner: str, size: int, *, own: int, limit: int) -> bool:
        """Take ``size`` bytes for a request that has taken ``own`` before; False when there is no room."""
        with self._lock:
            others = self._taken[owner] - own
            share = limit if not others else limit // OWNER_DIVISOR
            if self._taken.total() + size > limit or others + own + size > share:
                return False
            self._taken[owner] += size
            return True

    def give_back(self, owner: str, size: int) -> None:
        with self._lock:
            self._taken[owner] -= size
            if not self._taken[owner]:
                del self._taken[owner]

    def size(self) -> int:
        with self._lock:
            return self._taken.total()


READING = Budget()
"""Histories that are being read and rendered."""
COMPACTING = Budget()
"""Histories that are being compacted, until their summaries are generated."""


class Assembly:
    """The bytes that one request reads. Made by :func:`assembling`, which gives them back at the end."""

    def __init__(self, owner: str, budget: Budget = READING) -> None:
        self.owner = owner
        self.size = 0
        self._budget = budget

    def add(self, size: int) -> None:
        """Take ``size`` bytes before they are read. Raises :class:`RequestTooLarge` or :class:`Overloaded`."""
        if not size:
            return
        self.expect(size)
        if not self._budget.take(self.owner, size, own=self.size, limit=settings.RESPONSES_ASSEMBLY_MAX_BYTES):
            count(STORE_REFUSALS)
            raise Overloaded("The server reads as many histories as it has memory for. Try again in a few seconds.")
        self.size += size

    def expect(self, size: int) -> None:
        """Raise :class:`RequestTooLarge` when ``size`` more bytes could never be read for this request."""
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
        """Give back all bytes that were taken."""
        if self.size:
            self._budget.give_back(self.owner, self.size)
        self.size = 0


@contextmanager
def assembling(owner: str) -> Iterator[Assembly]:
    """The assembly of a request of ``owner``; the bytes that are added to it are given back when the block ends."""
    assembly = Assembly(owner)
    try:
        yield assembly
    finally:
        assembly.give_back()


def bytes_in_flight() -> int:
    """The bytes of histories that this process has in memory."""
    return READING.size() + COMPACTING.size()
