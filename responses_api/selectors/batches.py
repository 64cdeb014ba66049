"""Splits queries with many values: databases limit a statement's parameters, SQLite to 32,766 by default."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

Value = TypeVar("Value")

BATCH = 10_000


def batches(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """The values in order, in batches that fit into a statement."""
    for start in range(0, len(values), BATCH):
        yield values[start : start + BATCH]
