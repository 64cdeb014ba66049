"""The memory of the attention state that running sequences have. Pure."""

from dataclasses import dataclass

STEP = 256
"""Tokens for which a cache allocates at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCost:
    """The bytes of a model's state, by the tokens of a sequence.

    `layers` has for each kind of layer the bytes of a token, and the tokens that it retains at most: the window of a
    sliding attention, or None.
    """

    layers: tuple[tuple[int, int | None], ...] = ()
    fixed: int = 0
    """Bytes of a sequence whatever its length: the state of recurrent layers."""

    def of(self, tokens: int, *, sequences: int = 1) -> int:
        """Bytes of sequences of which the longest has so many tokens: a batch has room for the longest in each row."""
        if sequences < 1:
            return 0
        allocated = rounded(tokens)
        grown = sum(size * (allocated if window is None else min(allocated, window)) for size, window in self.layers)
        return sequences * (self.fixed + grown)

    @property
    def per_token(self) -> int:
        """Bytes of a token of a short sequence."""
        return sum(size for size, _ in self.layers)


def rounded(tokens: int) -> int:
    """The tokens for which a cache of so many has room."""
    return -(-tokens // STEP) * STEP


def same_layers(sizes: list[tuple[int, int | None]]) -> tuple[tuple[int, int | None], ...]:
    """Layers with the same window taken together."""
    together: dict[int | None, int] = {}
    for size, window in sizes:
        together[window] = together.get(window, 0) + size
    return tuple((size, window) for window, size in together.items() if size)
