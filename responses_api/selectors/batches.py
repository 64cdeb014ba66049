"""Questions about many values: databases bound the number of a statement's parameters, SQLite's default at 32,766."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

Value = TypeVar("Value")

BATCH = 10_000


def batches(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """The values in order, as many at a time as a statement can take."""
    for start in range(0, len(values), BATCH):
        yield values[start : start + BATCH]
