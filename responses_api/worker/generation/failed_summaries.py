"""Remembers which histories a model could not summarise, so that not every turn tries again. In memory, bounded."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import orjson

MOST_REMEMBERED = 4096
GROWTH = 1.5
"""By how much a history must have grown before its summary is worth another try."""
_FIRST_ITEMS = 2
_MOST_ENTRIES, _MOST_CHARACTERS, _DEEPEST = 8, 1000, 4

_lock = threading.Lock()
_failed: OrderedDict[bytes, int] = OrderedDict()
"""Tokens of the history when its summary failed, least recently noted first."""


class SummaryAttempts:
    """The attempts at one history with one model. Later turns of a history begin with the same items."""

    def __init__(self, items: Iterable[Mapping[str, Any]], *, scope: str, model: str) -> None:
        """``scope``: whose history it is; ``model``: the model's digest."""
        first = [_beginning(item) for item in islice(items, _FIRST_ITEMS)]
        self._key = hashlib.sha256(orjson.dumps([scope, model, first])).digest()

    def is_hopeless(self, tokens: int) -> bool:
        """Whether a summary failed when the history was hardly shorter than now."""
        with _lock:
            failed = _failed.get(self._key)
        return failed is not None and tokens < GROWTH * failed

    def note_failure(self, tokens: int) -> None:
        """The summary was empty, or not shorter than the history, which has so many tokens."""
        with _lock:
            _failed[self._key] = tokens
            _failed.move_to_end(self._key)
            while len(_failed) > MOST_REMEMBERED:
                _failed.popitem(last=False)


def _beginning(value: Any, depth: int = 0) -> Any:
    """A few entries of a JSON value, without ids: enough to know it again, and quickly read however large it is."""
    if isinstance(value, str):
        return value[:_MOST_CHARACTERS]
    if depth == _DEEPEST:
        return None
    if isinstance(value, Mapping):
        names = [name for name in islice(value, _MOST_ENTRIES) if name != "id"]
        return [[name, _beginning(value[name], depth + 1)] for name in sorted(names)]
    if isinstance(value, list | tuple):
        return [_beginning(entry, depth + 1) for entry in value[:_MOST_ENTRIES]]
    return value
