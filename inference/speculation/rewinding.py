"""Takes tokens back out of a model's state after a pass in which they were drafted and not accepted.

Each kind of state has its own way, and none copies what was there before the pass:

- Attention over everything: the columns of the tokens are dropped, per sequence.
- Attention over a window: a pass over several tokens keeps the whole window before them, so that the latest columns
  can be dropped. One sequence only.
- Recurrent: the state is as it was before the pass, and the model reads the accepted tokens again. One sequence only.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mlx_lm.models.cache import ArraysCache, BatchKVCache, BatchRotatingKVCache, CacheList

from inference.speculation.ragged_cache import RaggedKVCache

_Read = Callable[[list[int]], None]


def can_rewind(cache: Sequence[Any]) -> bool:
    """Whether all of the state of a batch with so many sequences is of a kind that is known here."""
    layers = list(_leaves(cache))
    kinds = {type(layer) for layer in layers} - {BatchKVCache, RaggedKVCache}
    if not kinds:
        return bool(layers)
    # Not both: the window that a recurrent model reads again would begin one token too late.
    return kinds in ({BatchRotatingKVCache}, {ArraysCache}) and _rows(layers) == 1


class Rewinding:
    """The state before a pass. Make one, run the model once over several tokens, and then call `take_back`."""

    def __init__(self, cache: list[Any]) -> None:
        if _rows(list(_leaves(cache))) > 1:
            _replace(cache, lambda layer: RaggedKVCache.of(layer) if type(layer) is BatchKVCache else layer)
        self._layers: list[Any] = list(_leaves(cache))
        for layer in self._layers:
            if type(layer) is BatchRotatingKVCache:
                temporal_order: Any = layer._temporal_order
                temporal_order()  # as the pass does, but before the mask is computed
        self._recurrent = [
            (layer, list(layer.cache), layer.left_padding, layer.lengths)
            for layer in self._layers
            if isinstance(layer, ArraysCache)
        ]

    def take_back(self, counts: Sequence[int], *, tokens: Sequence[Sequence[int]], read: _Read) -> None:
        """Remove this many of the latest tokens of each sequence.

        tokens: those of each sequence that stay. read: runs the model over tokens of the only sequence.
        """
        if not any(counts):
            return
        if self._recurrent:
            (count,), (kept,) = counts, tokens
            self._drop([count + len(kept)])
            for layer, arrays, left_padding, lengths in self._recurrent:
                layer.state = arrays, left_padding, lengths
            read(list(kept))
        else:
            self._drop(counts)

    def _drop(self, counts: Sequence[int]) -> None:
        for layer in self._layers:
            kind = type(layer)
            if kind is RaggedKVCache:
                layer.take_back(counts)
            elif kind is BatchKVCache:
                layer.trim(counts[0])
            elif kind is BatchRotatingKVCache:
                _drop_columns(layer, counts[0])


def align(cache: list[Any]) -> None:
    """Give the state the form that mlx-lm's own batches have."""
    _replace(cache, lambda layer: layer.aligned() if isinstance(layer, RaggedKVCache) else layer)


def _drop_columns(layer: Any, count: int) -> None:
    """Drop the latest columns after a pass over more than `count` tokens, which leaves them in order at the end."""
    layer.keys, layer.values = layer.keys[..., :-count, :], layer.values[..., :-count, :]
    layer._idx -= count
    layer._offset -= count
    layer.offset = layer.offset - count


def _leaves(cache: Sequence[Any]) -> Iterator[Any]:
    for layer in cache:
        if isinstance(layer, CacheList):
            yield from _leaves(layer.caches)
        else:
            yield layer


def _replace(cache: list[Any], replaced: Callable[[Any], Any]) -> None:
    for number, layer in enumerate(cache):
        if isinstance(layer, CacheList):
            layers = list(layer.caches)
            _replace(layers, replaced)
            layer.caches = tuple(layers)
        else:
            cache[number] = replaced(layer)


def _rows(layers: Sequence[Any]) -> int:
    layer = layers[0]
    return layer.batch_size if isinstance(layer, ArraysCache) else len(layer.left_padding)
