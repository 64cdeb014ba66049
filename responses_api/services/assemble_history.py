"""Memory for reading histories: so much at once in one process, and no more."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from responses_api.counting import STORE_REFUSALS, count
from responses_api.errors import NO_RETRY, Overloaded
from responses_api.selectors.history import history_size

_lock = threading.Lock()
_held = 0


@contextmanager
def assembling_history(turn_id: int | None) -> Iterator[None]:
    """Hold the bytes of a turn's history while it is read and rendered. Raises :class:`Overloaded`."""
    size = history_size(turn_id)
    _take(size)
    try:
        yield
    finally:
        _give_back(size)


def _take(size: int) -> None:
    global _held
    limit = settings.RESPONSES_ASSEMBLY_MAX_BYTES
    with _lock:
        if not size or _held + size <= limit:
            _held += size
            return
    count(STORE_REFUSALS)
    if size > limit:
        raise Overloaded(
            f"The history has {size} bytes, and this server reads no more than {limit} at once "
            "(RESPONSES_ASSEMBLY_MAX_BYTES). Begin without a history, or with a compacted one.",
            headers=NO_RETRY,
        )
    raise Overloaded("The server reads as many histories as it has memory for. Try again in a few seconds.")


def _give_back(size: int) -> None:
    global _held
    with _lock:
        _held -= size
