"""Turns the tensors of a GGUF file into MLX arrays, one at a time.

The quantised types that scale 32 weights together correspond to MLX's affine quantisation: a scale, an offset, and 4, 5
or 8 bits per weight. They are repacked, which changes no weight except for the rounding of scales to 16 bits. MLX has
no form for the other types (Q6_K scales 16 weights together): they are quantised again with 8 bits, finer than any of
them.
"""

from typing import TYPE_CHECKING, Any, Literal

from inference.types import ModelError

if TYPE_CHECKING:
    from gguf import ReaderTensor

WeightForm = Literal["fp32", "quantised"]

GROUP = 32
_BITS = {"Q4_0": 4, "Q4_1": 4, "Q4_K": 4, "Q5_0": 5, "Q5_1": 5, "Q5_K": 5, "Q8_0": 8}
_ZERO = {"Q4_0": 8, "Q5_0": 16, "Q8_0": 128}
"""The code of weight 0, where blocks have no offset of their own."""
_REQUANTISED_BITS = 8


def convert_tensor(tensor: "ReaderTensor", rows: Any = None, *, form: WeightForm) -> tuple[dict[str, Any], int | None]:
    """The arrays of a tensor, `weight` and for quantised ones `scales` and `biases`, and how many bits they have.

    `rows` is the order of the rows; None leaves it. With `form` "fp32" all weights are float32, without bits;
    otherwise, weights that aren't quantised in the file are float16. Raises ModelError for a type that can't be read.
    """
    import mlx.core as mx
    from gguf.quants import dequantize

    kind = tensor.tensor_type
    data = tensor.data if rows is None else tensor.data[rows]
    try:
        values = dequantize(data, kind)
    except NotImplementedError:
        raise ModelError(f"The tensor {tensor.name} is of type {kind.name}, which can't be read from GGUF.") from None
    if form == "fp32":
        return {"weight": mx.array(values)}, None
    if kind.name in ("F32", "F16", "BF16"):
        return {"weight": mx.array(values).astype(mx.float16)}, None
    if kind.name in _BITS:
        return _affine(data, values, kind.name), _BITS[kind.name]
    weight, *scaling = mx.quantize(mx.array(values), group_size=GROUP, bits=_REQUANTISED_BITS)
    scales, biases = (part.astype(mx.float16) for part in scaling)
    return {"weight": weight, "scales": scales, "biases": biases}, _REQUANTISED_BITS


def _affine(data: Any, values: Any, kind: str) -> dict[str, Any]:
    """The same weights in MLX's layout: codes in a stream of bits, the lowest first."""
    import mlx.core as mx
    import numpy as np

    bits, shape = _BITS[kind], values.shape
    scales, biases = _scales(data, kind)
    groups = values.reshape(-1, GROUP)
    steps = np.where(scales == 0, 1, scales)
    codes = np.rint((groups - biases) / steps).clip(0, 2**bits - 1).astype(np.uint8)
    stream = np.unpackbits(codes[..., None], axis=-1, count=bits, bitorder="little")
    packed = np.packbits(stream.reshape(shape[0], -1), axis=-1, bitorder="little").view(np.uint32)
    return {
        "weight": mx.array(packed),
        "scales": mx.array(scales.reshape(shape[0], -1)).astype(mx.float16),
        "biases": mx.array(biases.reshape(shape[0], -1)).astype(mx.float16),
    }


def _scales(data: Any, kind: str) -> tuple[Any, Any]:
    """The scale and the offset of each group, as columns, out of the head of each block."""
    import numpy as np
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import Q4_K

    _, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    blocks = np.ascontiguousarray(data).reshape(-1, block_bytes)
    scale = _float16_at(blocks, 0)
    if kind in _ZERO:
        return scale, -_ZERO[kind] * scale
    offset = _float16_at(blocks, 2)
    if kind in ("Q4_1", "Q5_1"):
        return scale, offset
    factors, offset_factors = Q4_K.get_scale_min(np.ascontiguousarray(blocks[:, 4 : 4 + Q4_K.K_SCALE_SIZE]))
    return (scale * factors).reshape(-1, 1), (-offset * offset_factors).reshape(-1, 1)


def _float16_at(blocks: Any, at: int) -> Any:
    """The number at this place of each block, as a column of float32."""
    import numpy as np

    return np.ascontiguousarray(blocks[:, at : at + 2]).view(np.float16).astype(np.float32)
