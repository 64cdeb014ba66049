"""Measures what the attention state of a loaded model takes. Call it on the thread that runs the model."""

from collections.abc import Iterable, Iterator
from typing import Any

import mlx.core as mx
from mlx_lm.models.cache import CacheList, make_prompt_cache

from inference.engine.quantised_state import QuantisedState
from inference.memory import StateCost, same_layers


def measure_state_cost(model: Any) -> StateCost:
    """The cost, after a step of one token, for which caches that grow have allocated room for many."""
    cache = make_prompt_cache(model)
    mx.eval(model(mx.array([[0]]), cache=cache), [layer.state for layer in cache])
    growing: list[tuple[int, int | None]] = []
    fixed = 0
    for layer in _layers(cache):
        keys = getattr(layer, "keys", None)
        if keys is None:
            fixed += layer.nbytes
        else:
            window = getattr(layer, "max_size", None) or getattr(layer, "chunk_size", None)
            growing.append((layer.nbytes // keys.shape[2], window))
    if isinstance(model, QuantisedState):
        growing.append((model.restored_bytes, None))
    return StateCost(layers=same_layers(growing), fixed=fixed)


def _layers(cache: Iterable[Any]) -> Iterator[Any]:
    for layer in cache:
        if isinstance(layer, CacheList):
            yield from _layers(layer.caches)
        else:
            yield layer
