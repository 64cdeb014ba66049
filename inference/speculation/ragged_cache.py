"""The attention state of several sequences of which each has accepted another number of drafted tokens.

In mlx-lm's BatchKVCache all sequences end at the same column, so taking back more tokens of one than of another would
move its whole state. Here each sequence has its own end, and a mask hides the columns beyond it.
"""

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
from mlx_lm.models.cache import BatchKVCache


class RaggedKVCache(BatchKVCache):
    """A BatchKVCache with an end for each sequence. Sequence i has the columns from `left_padding[i]` to `ends[i]`."""

    ends: list[int]
    keys: Any
    values: Any

    @classmethod
    def of(cls, cache: BatchKVCache) -> "RaggedKVCache":
        """The same state; the original must not be used any more."""
        ragged = cls.__new__(cls)
        ragged.__dict__.update(cache.__dict__)
        ragged.ends = [cache._idx] * len(cache.left_padding)
        return ragged

    def aligned(self) -> BatchKVCache:
        """The state as a BatchKVCache; this one must not be used any more."""
        end = self._idx
        for row, own_end in enumerate(self.ends):
            shift = end - own_end
            if shift:
                self.keys[row : row + 1, :, shift:end] = self.keys[row : row + 1, :, :own_end]
                self.values[row : row + 1, :, shift:end] = self.values[row : row + 1, :, :own_end]
        self.left_padding = self.left_padding + mx.array([end - own_end for own_end in self.ends])
        aligned = BatchKVCache.__new__(BatchKVCache)
        aligned.__dict__.update({name: value for name, value in self.__dict__.items() if name != "ends"})
        return aligned

    def take_back(self, counts: Sequence[int]) -> None:
        """Remove this many of the latest tokens of each sequence."""
        self.ends = [end - count for end, count in zip(self.ends, counts, strict=True)]
        self.offset = self.offset - mx.array(list(counts))
        self._idx = max(self.ends)

    def update_and_fetch(self, keys: Any, values: Any) -> tuple[Any, Any]:
        count = keys.shape[2]
        starts, self.ends = self.ends, [end + count for end in self.ends]
        if len(set(starts)) == 1:
            return self._parent.update_and_fetch(keys, values)  # type: ignore[no-any-return]
        self._idx += count
        missing = self._idx - self.keys.shape[2]
        if missing > 0:
            columns = [(0, 0), (0, 0), (0, -(-missing // self.step) * self.step), (0, 0)]
            self.keys, self.values = mx.pad(self.keys, columns), mx.pad(self.values, columns)
        self.offset = self.offset + count
        for row, start in enumerate(starts):
            self.keys[row, :, start : start + count] = keys[row]
            self.values[row, :, start : start + count] = values[row]
        return self._parent.keys_and_values()  # type: ignore[no-any-return]

    def make_mask(self, N: int, return_array: bool = False, window_size: int | None = None, **kwargs: Any) -> Any:  # noqa: N803
        if len(set(self.ends)) == 1:
            return self._parent.make_mask(N, return_array=return_array, window_size=window_size, **kwargs)
        columns = mx.arange(self._idx + N)
        queries = mx.array(self.ends)[:, None, None, None] + mx.arange(N)[:, None]
        mask = (columns <= queries) & (columns >= self.left_padding[:, None, None, None])
        return mask if window_size is None else mask & (columns > queries - window_size)

    def filter(self, batch_indices: list[int]) -> None:
        before = self._idx
        self._parent.filter(batch_indices)
        shift = before - self._idx
        self.ends = [self.ends[index] - shift for index in batch_indices]
        self._idx = max(self.ends)

    def extract(self, idx: int) -> Any:
        end, self._idx = self._idx, self.ends[idx]
        try:
            return self._parent.extract(idx)
        finally:
            self._idx = end

    def extend(self, other: Any) -> None:
        # A decoder aligns first. BatchKVCache's own method would join rows with different ends silently.
        raise NotImplementedError("align the rows first")

    def trim(self, n: int) -> int:
        self.take_back([n] * len(self.ends))
        return n

    @property
    def _parent(self) -> Any:
        """The methods of BatchKVCache, which have no types."""
        return super()
