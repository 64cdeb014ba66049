"""Reads prompts into the state of a model."""

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
from mlx_lm.models.cache import make_prompt_cache

from inference.decoding.row import Row


def read_slice(model: Any, tokens: Sequence[int], state: list[Any] | None) -> list[Any]:
    """The state of a sequence after some more tokens; None is that before the first."""
    if state is None:
        state = make_prompt_cache(model)
    model(mx.array(list(tokens))[None], cache=state)
    _evaluate(state)
    return state


def read_together(model: Any, rows: Sequence[Row]) -> list[Any]:
    """The states of all rows in one, after all of their tokens but the last.

    All rows have something to read, or none has: mlx-lm's recurrent layers take no empty ones. Raises ValueError when
    the state of this model is of a kind that can't be batched.
    """
    states = _merged([row.state if row.state is not None else make_prompt_cache(model) for row in rows])
    rests = [row.tokens[row.read : -1] for row in rows]
    lengths = [len(rest) for rest in rests]
    longest = max(lengths)
    if not longest:
        return states
    padding = [longest - length for length in lengths]
    if any(padding):
        for layer in states:
            layer.prepare(lengths=lengths, right_padding=padding)
    model(mx.array([[*rest, *[0] * (longest - len(rest))] for rest in rests]), cache=states)
    _evaluate(states)
    if any(padding):
        for layer in states:
            layer.finalize()
        _evaluate(states)
    return states


def _merged(states: Sequence[list[Any]]) -> list[Any]:
    """One batch of the states of several sequences, layer by layer."""
    for layer in states[0]:
        if not hasattr(layer, "merge"):
            raise ValueError(f"states of {type(layer).__name__} can't be batched")
    return [layers[0].merge(layers) for layers in zip(*states, strict=True)]


def _evaluate(state: Sequence[Any]) -> None:
    mx.eval([layer.state for layer in state])
    mx.clear_cache()
