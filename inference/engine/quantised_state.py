"""Keys and values in 8 or 4 bits: a model whose attention state takes about a quarter or a seventh of fp32's memory.

They are quantised when they are written and restored when they are read, layer by layer, in front of mlx-lm's caches.
There, each vector is a row of words: its numbers, then the scales and biases of its groups. So everything that moves
states about (batches, speculation, the prefix cache, files) sees arrays like any others (decision 27).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import mlx.core as mx
from mlx_lm.models import cache as _untyped

from inference.memory import group_of

mlx_lm: Any = _untyped

_WORD_BITS = 32
_ATTENTION = (
    mlx_lm.KVCache,
    mlx_lm.RotatingKVCache,
    mlx_lm.BatchKVCache,
    mlx_lm.BatchRotatingKVCache,
)
"""The caches of keys and values. Others, such as those of recurrent layers, stay as they are."""


class QuantisedState:
    """A model of mlx-lm, called in the same way. Only it can read what it has written into its caches."""

    def __init__(self, model: Any, bits: int) -> None:
        """Raises ValueError for a model without keys and values, or with vectors that no group divides."""
        self._model, self._bits = model, bits
        layers = [_wrapped(layer, bits) for layer in mlx_lm.make_prompt_cache(model)]
        model(mx.array([[0]]), cache=layers)
        self.restored_bytes = max((layer.token_bytes for layer in _quantised_among(layers)), default=0)
        """Of a token's keys and values in the layer with the most. One layer at a time is restored."""
        if not self.restored_bytes:
            raise ValueError("its state has no keys and values")

    def __call__(self, tokens: mx.array, cache: Sequence[Any]) -> Any:
        return self._model(tokens, cache=[_wrapped(layer, self._bits) for layer in cache])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


class QuantisedLayer:
    """The cache of one layer, for one call of the model."""

    def __init__(self, layer: Any, bits: int) -> None:
        self._layer, self._bits = layer, bits
        self._widths: tuple[int, int] = (0, 0)
        self._dtype: Any = None
        self.token_bytes = 0
        """Of one token, restored."""

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        """Add the keys and values of some tokens; returns those of all tokens."""
        self._widths, self._dtype = (keys.shape[-1], values.shape[-1]), keys.dtype
        self.token_bytes = (keys.nbytes + values.nbytes) // (keys.shape[0] * keys.shape[2])
        written = self._layer.update_and_fetch(quantised(keys, self._bits), quantised(values, self._bits))
        return self._restored(*written)

    def keys_and_values(self) -> tuple[mx.array, mx.array]:
        """Those of all tokens, for a layer that shares them."""
        return self._restored(*self._layer.keys_and_values())

    def _restored(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        (width, other), bits, dtype = self._widths, self._bits, self._dtype
        return restored(keys, bits, width=width, dtype=dtype), restored(values, bits, width=other, dtype=dtype)

    def __getattr__(self, name: str) -> Any:
        if name in ("keys", "values", "state"):
            raise ValueError("it reads keys and values in a way of its own")
        return getattr(self._layer, name)


def quantised(vectors: mx.array, bits: int) -> mx.array:
    """Vectors along the last axis as words of 32 bits. Raises ValueError when no group divides them."""
    numbers, scales, biases = mx.quantize(vectors, group_size=group_of(vectors.shape[-1]), bits=bits)
    return mx.concatenate([numbers, mx.concatenate([scales, biases], axis=-1).view(mx.uint32)], axis=-1)


def restored(words: mx.array, bits: int, *, width: int, dtype: Any) -> mx.array:
    """The vectors, of `width` numbers of a type, as far as their bits tell."""
    count = width * bits // _WORD_BITS
    scales, biases = mx.split(words[..., count:].view(dtype), 2, axis=-1)
    return mx.dequantize(words[..., :count], scales, biases, group_size=group_of(width), bits=bits)


def _wrapped(layer: Any, bits: int) -> Any:
    if isinstance(layer, mlx_lm.CacheList):
        return mlx_lm.CacheList(*(_wrapped(inner, bits) for inner in layer.caches))
    return QuantisedLayer(layer, bits) if isinstance(layer, _ATTENTION) else layer


def _quantised_among(layers: Sequence[Any]) -> Iterator[QuantisedLayer]:
    for layer in layers:
        if isinstance(layer, mlx_lm.CacheList):
            yield from _quantised_among(layer.caches)
        elif isinstance(layer, QuantisedLayer):
            yield layer
