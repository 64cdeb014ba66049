"""Reads prompts into the state of a model."""

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
from mlx_lm.models.cache import BatchKVCache, KVCache, make_prompt_cache

from inference.decoding.last_logits import last_logits
from inference.decoding.row import Row


def read_slice(model: Any, tokens: Sequence[int], state: list[Any] | None) -> list[Any]:
    """The state of a sequence after some more tokens; None is that before the first."""
    if state is None:
        state = make_prompt_cache(model)
    model(mx.array(list(tokens))[None], cache=state)
    _evaluate(state)
    return state


def read_together(model: Any, rows: Sequence[Row], *, whole: bool = False) -> tuple[list[Any], Any]:
    """The states of all rows in one, after all of their tokens but the last, and None; or if `whole`, after all of
    their tokens, and the logits there: (rows, vocabulary). The states that the rows had must not be used any more.

    All rows have something to read, or none has: mlx-lm's recurrent layers take no empty ones. Raises ValueError when
    the state of this model is of a kind that can't be batched.
    """
    states = _merged([row.state if row.state is not None else make_prompt_cache(model) for row in rows])
    rests = [row.tokens[row.read :] if whole else row.tokens[row.read : -1] for row in rows]
    lengths = [len(rest) for rest in rests]
    longest = max(lengths)
    if not longest:
        return states, None
    padding = [longest - length for length in lengths]
    if any(padding):
        for layer in states:
            layer.prepare(lengths=lengths, right_padding=padding)
    tokens = mx.array([[*rest, *[0] * (longest - len(rest))] for rest in rests])
    logits = None
    if whole:
        logits = last_logits(model, tokens, lengths, states)
    else:
        model(tokens, cache=states)
    _evaluate(states)
    if any(padding):
        for layer in states:
            layer.finalize()
        _evaluate(states)
    return states, logits


def _merged(states: Sequence[list[Any]]) -> list[Any]:
    """One batch of the states of several sequences, layer by layer."""
    for layer in states[0]:
        if not hasattr(layer, "merge"):
            raise ValueError(f"states of {type(layer).__name__} can't be batched")
    return [_in_one(layers) for layers in zip(*states, strict=True)]


def _in_one(layers: Sequence[Any]) -> Any:
    """The batch of one layer. One sequence's is taken over, with the room that it has, and not copied."""
    layer = layers[0]
    if len(layers) > 1 or type(layer) is not KVCache or layer.keys is None:
        return layer.merge(layers)
    batch: Any = BatchKVCache([0])
    batch.keys, batch.values, batch._idx = layer.keys, layer.values, layer.offset
    batch.offset = batch.offset + layer.offset
    layer.keys = layer.values = None  # another reference would have them copied when they are written to
    return batch


def _evaluate(state: Sequence[Any]) -> None:
    mx.eval([layer.state for layer in state])
    mx.clear_cache()
