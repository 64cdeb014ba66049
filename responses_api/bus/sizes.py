"""How large a message is, for buffers that are bounded in bytes."""

from dataclasses import fields, is_dataclass
from typing import Any

BUFFER_BYTES = 16 << 20
"""Most bytes of messages that wait for one reader. One that falls further behind misses the newest, and notices it by
their numbers.
"""


def size_of(value: Any) -> int:
    """The characters of all texts in a message, or in its wire form."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(size_of(entry) for entry in value.values())
    if isinstance(value, list | tuple):
        return sum(size_of(entry) for entry in value)
    if is_dataclass(value):
        return sum(size_of(getattr(value, field.name)) for field in fields(value))
    return 0
