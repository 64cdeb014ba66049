"""How large a message is, for buffers that are bounded in bytes."""

from dataclasses import fields, is_dataclass
from typing import Any

BUFFER_BYTES = 16 << 20
"""Most bytes of messages that wait for one reader. One that falls further behind misses the newest, and notices it by
their numbers.
"""
BUNDLE_BYTES = 1 << 20
"""Most bytes of messages that travel together."""


def size_of(value: Any) -> int:
    """The characters of all texts in a dataclass or a JSON value."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(size_of, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(size_of, value))
    if is_dataclass(value):
        return sum(size_of(getattr(value, field.name)) for field in fields(value))
    return 0
