"""Logits where they are needed: a prompt of fifty tokens spends a fifth of its time on those that nobody reads."""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import mlx.core as mx
from mlx.nn import Module  # type: ignore[attr-defined]

_ends: ContextVar[Sequence[int] | None] = ContextVar("ends", default=None)


def select_logits(model: Any) -> None:
    """Make a model's last layer obey `last_logits`, if it is where models of mlx-lm usually have it."""
    modules = dict(model.named_modules())
    for name, kind in (("lm_head", _LinearHead), ("embed_tokens", _TiedHead)):
        paths = [path for path in modules if path.rpartition(".")[2] == name]
        if paths:
            if len(paths) == 1:
                setattr(modules[paths[0].rpartition(".")[0]], name, kind(modules[paths[0]]))
            return


def last_logits(model: Any, tokens: mx.array, ends: Sequence[int], state: list[Any]) -> mx.array:
    """The logits (rows, vocabulary) after the first so many tokens of each row."""
    before = _ends.set(ends)
    try:
        logits = model(tokens, cache=state)
    finally:
        _ends.reset(before)
    return logits[:, 0] if logits.shape[1] == 1 else _at_ends(logits, ends)[:, 0]


def _at_ends(values: mx.array, ends: Sequence[int]) -> mx.array:
    return values[mx.arange(len(ends)), mx.array(list(ends)) - 1][:, None]


class _Head(Module):  # type: ignore[misc]
    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        inner = self.get("inner")
        if name == "inner" and inner is not None:
            return inner
        if inner is None or name.startswith("_"):
            raise AttributeError(name)
        return getattr(inner, name)

    def selected(self, hidden: mx.array) -> mx.array:
        """What the logits are to be computed of."""
        ends = _ends.get()
        return hidden if ends is None or hidden.ndim != 3 else _at_ends(hidden, ends)


class _LinearHead(_Head):
    def __call__(self, hidden: mx.array) -> Any:
        return self.inner(self.selected(hidden))


class _TiedHead(_Head):
    """The embedding of tokens, whose transpose is the last layer."""

    def __call__(self, tokens: mx.array) -> Any:
        return self.inner(tokens)

    def as_linear(self, hidden: mx.array) -> Any:
        """The logits."""
        return self.inner.as_linear(self.selected(hidden))
