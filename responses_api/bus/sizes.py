"""How large a message is, for buffers that are bounded in bytes."""

from typing import Any

BUFFER_BYTES = 16 << 20
"""Of the messages that wait for one reader. One that falls further behind misses the newest, and sees by their numbers
that it did.
"""


def size_of(value: Any) -> int:
    """The characters of all texts in a message."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(size_of(entry) for entry in value.values())
    if isinstance(value, list | tuple):
        return sum(size_of(entry) for entry in value)
    return 0
