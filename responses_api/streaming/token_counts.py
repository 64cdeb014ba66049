"""Counting what sequences read and make."""

from collections.abc import Sequence
from dataclasses import dataclass

from inference.types import Chunk


@dataclass(slots=True)
class TokenCounts:
    """What generations have read and made."""

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0

    def count(self, chunks: Sequence[Chunk]) -> None:
        """Add what the engine says of one sequence."""
        for chunk in chunks:
            self.cached += chunk.cached_tokens
            self.cache_write += chunk.cache_write_tokens
            self.output += len(chunk.tokens)
