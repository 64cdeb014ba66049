"""Caches as mlx-lm has them, filled with numbers that tell which tokens they belong to."""

from typing import Any

Tokens = tuple[int, ...]
KINDS: dict[str, tuple[str, ...]] = {
    "full": ("full",),
    "window": ("window", "full"),
    "recurrent": ("recurrent",),
    "hybrid": ("list", "full"),
    "everything": ("window", "list", "full", "recurrent"),
}
"""The layers of models of each kind."""
WINDOW = 3
BYTES = 2 * 4
"""Of one token in one layer that sees every token: keys and values, one number of 32 bits each."""


def number(tokens: Tokens) -> float:
    """The state after these tokens; every token counts."""
    value = 1
    for token in tokens:
        value = (value * 31 + token + 1) % 65521
    return float(value)


def numbers(tokens: Tokens) -> list[float]:
    return [number(tokens[: position + 1]) for position in range(len(tokens))]


def new_state(kind: str, tokens: Tokens, *, tail: int = WINDOW) -> list[Any]:
    """The state after `tokens`. Windows have as many of the last tokens as `tail` says, or all."""
    return [_layer(layer, tokens, tail) for layer in KINDS[kind]]


def check_state(cache: list[Any], tokens: Tokens) -> None:
    """It is the state after `tokens`, and as mlx-lm would have left it."""
    for layer in cache:
        _check(layer, tokens)


def _layer(kind: str, tokens: Tokens, tail: int) -> Any:
    import mlx.core as mx
    from mlx_lm.models.cache import ArraysCache, CacheList, KVCache, RotatingKVCache

    layer: Any

    if kind == "list":
        return CacheList(_layer("recurrent", tokens, tail), _layer("full", tokens, tail))
    if kind == "recurrent":
        arrays = ArraysCache(2)
        arrays[0] = mx.full((1, 2), number(tokens))
        arrays[1] = mx.full((1, 1, 3), number(tokens) + 0.5)
        return arrays
    layer = KVCache() if kind == "full" else RotatingKVCache(WINDOW)
    held = numbers(tokens)[-tail:] if kind == "window" else numbers(tokens)
    layer.keys = mx.array(held)[None, None, :, None]
    layer.values, layer.offset = layer.keys + 0.25, len(tokens)
    if kind == "window":
        layer._idx = len(held)
    return layer


def _check(layer: Any, tokens: Tokens) -> None:
    kind = type(layer).__name__
    if kind == "CacheList":
        for inner in layer.caches:
            _check(inner, tokens)
    elif kind == "ArraysCache":
        assert layer[0].tolist() == [[number(tokens)] * 2]
        assert layer[1].tolist() == [[[number(tokens) + 0.5] * 3]]
    elif kind == "KVCache":
        assert layer.offset == len(tokens)
        assert layer.keys[0, 0, : layer.offset, 0].tolist() == numbers(tokens)
        assert layer.values[0, 0, : layer.offset, 0].tolist() == [value + 0.25 for value in numbers(tokens)]
    else:
        size = min(WINDOW, len(tokens))
        assert (layer.offset, layer._idx, layer.max_size, layer.keep) == (len(tokens), size, WINDOW, 0)
        wanted = numbers(tokens)[-size:]
        for held, more in ((layer.keys, 0.0), (layer.values, 0.25)):
            values = held[0, 0, :, 0].tolist()
            if len(tokens) >= WINDOW:  # of a full window, the oldest token is never read
                assert (len(values), values[1:]) == (WINDOW, [value + more for value in wanted[1:]])
            else:
                assert values == [value + more for value in wanted]
