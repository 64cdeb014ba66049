"""Counts of the tokens that sequences read and generate."""

from collections.abc import Sequence
from dataclasses import dataclass

from inference.types import Chunk


@dataclass(slots=True)
class TokenCounts:
    """Tokens that generations have read and generated."""

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0

    def count(self, chunks: Sequence[Chunk]) -> None:
        """Add the counts of a sequence's chunks."""
        for chunk in chunks:
            self.cached += chunk.cached_tokens
            self.cache_write += chunk.cache_write_tokens
            self.output += len(chunk.tokens)
