"""The tokens of one sequence, and where its latest ones have occurred before. Needs numpy only.

A look-up compares whole arrays: 10 µs for 1,000 tokens, 60 µs for 100,000. There is no index to build, so a long prompt
costs nothing until something in it is repeated.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

SHORTEST_MATCH = 2
"""Fewer equal tokens predict too little: after one, the next is right in one case of five."""
LONG_MATCH = 8
"""Longer ones predict no better."""
_LONGEST_COMPARED = 32
"""Of several long matches the longest is used, up to this length: a document that is copied wins over its own copy."""


class Match(NamedTuple):
    """An earlier place with the same tokens as the end of the history."""

    length: int
    """How many tokens are the same; beyond `LONG_MATCH` maybe more."""
    end: int
    """The index of the token that follows there."""


class TokenHistory:
    """Prompt and answer of one sequence, as far as they are known."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self._size = len(tokens)
        self._buffer: Any = np.empty(2 * len(tokens) + 64, dtype=np.int32)
        self._buffer[: self._size] = tokens

    def __len__(self) -> int:
        return self._size

    def extend(self, tokens: Sequence[int]) -> None:
        """Add tokens at the end."""
        size = self._size + len(tokens)
        if size > len(self._buffer):
            larger = np.empty(2 * size, dtype=np.int32)
            larger[: self._size] = self._buffer[: self._size]
            self._buffer = larger
        self._buffer[self._size : size] = tokens
        self._size = size

    def truncate(self, size: int) -> None:
        """Remove the tokens from this index on."""
        self._size = min(self._size, size)

    def match(self) -> Match | None:
        """The longest match, the latest one among equals; None if there is none of at least `SHORTEST_MATCH`."""
        tokens, last = self._buffer, self._size - 1
        places = np.flatnonzero(tokens[: max(0, last)] == tokens[last]) if last > 0 else np.empty(0, dtype=np.int64)
        length = 0
        while len(places):
            length += 1
            if length == _LONGEST_COMPARED or (length >= LONG_MATCH and len(places) == 1):
                break
            earlier = places[places >= length]
            earlier = earlier[tokens[earlier - length] == tokens[last - length]]
            if not len(earlier):
                break
            places = earlier
        return Match(length, int(places[-1]) + 1) if length >= SHORTEST_MATCH else None

    def following(self, match: Match, count: int) -> list[int]:
        """The tokens that follow at an earlier place. Those that reach the end of the history are repeated."""
        tokens: list[int] = np.resize(self._buffer[match.end : self._size], count).tolist()
        return tokens
