"""Attention on a CPU where MLX computes exponentials one after another: there, NumPy's take a tenth of the time.

Of a prompt's attention in MLX three quarters are exponentials on x86, whose build of MLX has no vector instructions
for them. Here MLX multiplies the matrices, and NumPy computes the softmax between them, in the memory that MLX has
allocated (decision 28).
"""

import time
from typing import Any

import mlx.core as mx
import numpy as np

from inference.decoding import cpu_activation

LEAST_SCORES = 1 << 16
"""With fewer scores, waiting for them costs more than it saves."""
_BLOCK = 1 << 16
"""Scores that are worked on at once: they stay in the processor's cache."""
_HIDDEN = -1e30
"""A score that is masked. Finite: a row of padding may have no others."""
_LEAST_GAIN = 2.0
_fast: Any = mx.fast
_original = _fast.scaled_dot_product_attention


def install() -> None:
    """Have all models that are loaded from now on use it, and `cpu_activation`, where they are faster."""
    is_installed = _fast.scaled_dot_product_attention is not _original
    if not is_installed and mx.default_device().type == mx.DeviceType.cpu and _exponentials_are_slow():
        _fast.scaled_dot_product_attention = attention
        cpu_activation.install()


def attention(
    queries: mx.array, keys: mx.array, values: mx.array, *, scale: float, mask: Any = None, **options: Any
) -> mx.array:
    """As `mx.fast.scaled_dot_product_attention`, to which it leaves what it is not made for."""
    batch, heads, length, _ = queries.shape
    groups, total = keys.shape[1:3]
    is_left = (
        batch * heads * length * total < LEAST_SCORES
        or queries.dtype != mx.float32
        or (isinstance(mask, mx.array) and mask.ndim not in (2, 4))
        or any(option is not None for option in options.values())
    )
    if is_left:
        return _original(queries, keys, values, scale=scale, mask=mask, **options)  # type: ignore[no-any-return]
    grouped = (queries * scale).reshape(batch, groups, -1, queries.shape[-1])
    scores = (grouped @ keys.swapaxes(-1, -2)).reshape(batch, groups, -1, length, total)
    if isinstance(mask, mx.array):
        scores = _masked(scores, mask)
    mx.eval(scores)
    sums = _exponentiate(np.array(scores, copy=False), is_causal=isinstance(mask, str))
    weights = scores.reshape(batch, groups, -1, total)
    return ((weights @ values) / mx.array(sums).reshape(batch, groups, -1, 1)).reshape(batch, heads, length, -1)


def _masked(scores: mx.array, mask: mx.array) -> mx.array:
    """scores: (batch, groups, heads of a group, length, total)."""
    if mask.ndim == 4:
        batch, heads = mask.shape[:2]
        groups = scores.shape[1] if heads > 1 else 1
        mask = mask.reshape(batch, groups, heads // groups, *mask.shape[2:])
    return mx.where(mask, scores, _HIDDEN) if mask.dtype == mx.bool_ else scores + mask


def _exponentiate(scores: "np.ndarray[Any, Any]", *, is_causal: bool) -> "np.ndarray[Any, Any]":
    """Replace scores by the exponentials of their distance from the largest of their row; returns the sums of rows."""
    length, total = scores.shape[-2:]
    if is_causal and length > 1:
        later = np.triu(np.full((length, length), _HIDDEN, dtype=np.float32), 1)
        scores[..., total - length :] += later
    rows = scores.reshape(-1, total)
    sums = np.empty((len(rows), 1), dtype=np.float32)
    step = max(1, _BLOCK // total)
    for first in range(0, len(rows), step):
        block = rows[first : first + step]
        block -= block.max(axis=1, keepdims=True)
        np.exp(block, out=block)
        block.sum(axis=1, keepdims=True, out=sums[first : first + step])
    return sums


def _exponentials_are_slow() -> bool:
    """Measured in a few milliseconds."""
    numbers = mx.zeros((1 << 16,))
    mx.eval(mx.exp(numbers))
    began = time.perf_counter()
    mx.eval(mx.exp(numbers))
    middle = time.perf_counter()
    np.exp(np.array(numbers, copy=False))
    return middle - began > _LEAST_GAIN * (time.perf_counter() - middle)
