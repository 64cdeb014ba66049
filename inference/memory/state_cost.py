"""The memory of the attention state that running sequences have. Pure."""

from dataclasses import dataclass

GROUPS = 64, 32
"""How many numbers share a scale: as many as possible, a whole number of times in a vector."""
STEP = 256
"""Tokens for which a cache allocates at once."""
_PROMPT_BYTES = 256 << 20, 2 << 30


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


def group_of(width: int) -> int:
    """How many numbers of a key or a value share a scale. Raises ValueError when no group divides them."""
    for group in GROUPS:
        if width % group == 0:
            return group
    raise ValueError(f"its keys or values have {width} numbers, which is not a multiple of {GROUPS[-1]}")


def vector_bytes(width: int, *, value: int, bits: int | None) -> int:
    """Bytes of a key or a value of so many numbers of `value` bytes, or of `bits` when they are quantised."""
    if bits is None or not width or width % GROUPS[-1]:
        return width * value
    return width * bits // 8 + 2 * value * (width // group_of(width))


def bytes_for_prompts(cost: StateCost, *, context: int) -> int:
    """How much memory cached prompts have unless it is stated: what one sequence takes that fills the context, within
    limits.
    """
    least, most = _PROMPT_BYTES
    return min(max(cost.of(context), least), most)


def rounded(tokens: int) -> int:
    """The tokens for which a cache of so many has room."""
    return -(-tokens // STEP) * STEP


def same_layers(sizes: list[tuple[int, int | None]]) -> tuple[tuple[int, int | None], ...]:
    """Layers with the same window taken together."""
    together: dict[int | None, int] = {}
    for size, window in sizes:
        together[window] = together.get(window, 0) + size
    return tuple((size, window) for window, size in together.items() if size)
