"""Tensors of every quantised type are read from a GGUF file with their values."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

from inference.models.gguf_weights import GROUP, convert_tensor
from tests.inference.models.k_quants import quantize_q4_k, quantize_q6_k

ROWS, COLUMNS = 6, 512
SCALED = {"Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q4_K": (0, 2), "Q5_K": (0, 2)}
"""Types that scale 32 weights together, and where their blocks have 16-bit numbers."""
OTHERS = {"Q6_K": (208,), "Q3_K": (108,), "Q2_K": (80, 82), "IQ4_XS": (0,)}


def tensor(kind: str, places: tuple[int, ...]) -> Any:
    """A tensor of random blocks: any bytes are weights, as long as the numbers are."""
    block, size = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    chance = np.random.default_rng(1)
    blocks = chance.integers(0, 256, (ROWS * COLUMNS // block, size), dtype=np.uint8)
    for place in places:
        numbers = chance.uniform(0.001, 0.01, len(blocks)).astype(np.float16)
        blocks[:, place : place + 2] = numbers.view(np.uint8).reshape(-1, 2)
    return SimpleNamespace(name="w", tensor_type=GGMLQuantizationType[kind], data=blocks.reshape(ROWS, -1))


def values(parts: dict[str, Any], bits: int | None) -> Any:
    import mlx.core as mx

    if bits is None:
        return np.array(parts["weight"])
    scales, biases = (parts[part].astype(mx.float32) for part in ("scales", "biases"))
    return np.array(mx.dequantize(parts["weight"], scales, biases, group_size=GROUP, bits=bits))


@pytest.mark.parametrize("kind", [*SCALED, *OTHERS])
def test_fp32_values_are_those_of_the_file(kind: str) -> None:
    source = tensor(kind, (SCALED | OTHERS)[kind])
    parts, bits = convert_tensor(source, form="fp32")
    assert bits is None
    assert np.array_equal(values(parts, bits), dequantize(source.data, source.tensor_type))


@pytest.mark.parametrize("kind", SCALED)
def test_groups_of_32_are_kept_but_for_the_rounding_of_their_scales(kind: str) -> None:
    source = tensor(kind, SCALED[kind])
    parts, bits = convert_tensor(source, form="quantised")
    exact = dequantize(source.data, source.tensor_type)
    codes = 2.0 ** (bits or 0)
    largest = np.abs(exact.reshape(-1, GROUP)).max(axis=-1, keepdims=True)
    off = np.abs(values(parts, bits) - exact).reshape(-1, GROUP)
    assert (off <= largest * codes * 2**-11).all()
    assert off.mean() < 2**-9 * np.abs(exact).mean()


@pytest.mark.parametrize("kind", OTHERS)
def test_other_types_are_quantised_finer_than_they_were(kind: str) -> None:
    source = tensor(kind, OTHERS[kind])
    parts, bits = convert_tensor(source, form="quantised")
    exact = dequantize(source.data, source.tensor_type)
    spread = np.ptp(exact.reshape(-1, GROUP), axis=-1, keepdims=True)
    assert bits == 8
    assert (np.abs(values(parts, bits) - exact).reshape(-1, GROUP) <= 1.2 * spread / 255).all()


def test_rows_are_put_in_order_before_they_are_read() -> None:
    source, order = tensor("Q4_K", SCALED["Q4_K"]), np.arange(ROWS)[::-1]
    whole, reordered = (convert_tensor(source, rows, form="fp32")[0]["weight"] for rows in (None, order))
    assert np.array_equal(np.array(reordered), np.array(whole)[order])


@pytest.mark.parametrize(("kind", "write", "error"), [("Q4_K", quantize_q4_k, 0.15), ("Q6_K", quantize_q6_k, 0.04)])
def test_the_tests_own_k_quants_are_what_the_package_reads(kind: str, write: Any, error: float) -> None:
    wanted = np.random.default_rng(2).normal(size=(ROWS, COLUMNS)).astype(np.float32)
    read = dequantize(write(wanted), GGMLQuantizationType[kind])
    assert np.abs(read - wanted).mean() < error * np.abs(wanted).mean()
