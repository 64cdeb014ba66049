"""Attention with NumPy's exponentials is that of MLX, for every form of mask."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest

CAUSAL = "causal"


@pytest.fixture(autouse=True)
def every_size() -> Iterator[None]:
    pytest.importorskip("mlx.core")
    with (
        patch("inference.decoding.cpu_attention.LEAST_SCORES", 0),
        patch("inference.decoding.cpu_attention._BLOCK", 64),
    ):
        yield


def masks(batch: int, heads: int, length: int, total: int) -> dict[str, Any]:
    """One of each form. A row of padding sees nothing."""
    import mlx.core as mx

    seen = mx.arange(total - length, total)[:, None] >= mx.arange(total)[None]
    padded = mx.broadcast_to(seen, (batch, 1, length, total)) & (mx.arange(total) >= 2)
    per_head = mx.broadcast_to(padded, (batch, heads, length, total)) & (mx.arange(heads)[:, None, None] != 1)
    return {
        "none": None,
        CAUSAL: CAUSAL,
        "2 axes": seen,
        "added": mx.where(seen, 0.0, -mx.inf),
        "padding": padded,
        "each head": per_head,
    }


@pytest.mark.parametrize("form", ["none", CAUSAL, "2 axes", "added", "padding", "each head"])
@pytest.mark.parametrize(
    ("batch", "heads", "groups", "length", "total"), [(1, 9, 3, 5, 12), (3, 4, 4, 1, 7), (2, 6, 1, 8, 8)]
)
def test_it_is_that_of_mlx(batch: int, heads: int, groups: int, length: int, total: int, form: str) -> None:
    import mlx.core as mx

    from inference.decoding.cpu_attention import _original, attention

    queries, room = mx.random.normal((batch, heads, length, 16)), mx.random.normal((batch, groups, total + 3, 16))
    keys, values = room[:, :, :total], mx.random.normal((batch, groups, total, 24))
    mask = masks(batch, heads, length, total)[form]
    expected = _original(queries, keys, values, scale=0.25, mask=mask)
    found = attention(queries, keys, values, scale=0.25, mask=mask)
    sees = mx.ones((batch, heads, length, 1), dtype=mx.bool_)
    if form in ("padding", "each head"):
        sees = mx.broadcast_to(mask, (batch, heads, length, total)).any(axis=-1, keepdims=True)
    assert found.shape == expected.shape
    assert mx.allclose(mx.where(sees, found, 0), mx.where(sees, expected, 0), atol=1e-5).item()
    assert not mx.isnan(found).any().item(), "not even in padding"


def test_what_it_is_not_made_for_is_left_to_mlx() -> None:
    import mlx.core as mx

    from inference.decoding.cpu_attention import _original, attention

    half = mx.ones((1, 2, 3, 16), dtype=mx.float16)
    assert attention(half, half, half, scale=0.25, mask="causal", sinks=None).dtype == mx.float16
    whole = half.astype(mx.float32)
    options: dict[str, Any] = {"scale": 0.25, "sinks": mx.zeros((2,))}
    assert mx.array_equal(attention(whole, whole, whole, **options), _original(whole, whole, whole, **options)).item()


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_the_activation_is_that_of_mlx(kind: str) -> None:
    """At both ends of the range, too."""
    import mlx.core as mx

    from inference.decoding.cpu_activation import _original, swiglu

    gate = mx.array([-1e30, -200.0, -88.0, -20.0, -1.5, 0.0, 0.5, 3.0, 60.0, 1e30]).astype(getattr(mx, kind))
    values = mx.full(gate.shape, 0.5, dtype=gate.dtype)
    found, expected = swiglu(gate, values), _original(gate, values)
    assert found.dtype == gate.dtype
    assert mx.allclose(found, expected, rtol=1e-5, atol=1e-6, equal_nan=True).item()
