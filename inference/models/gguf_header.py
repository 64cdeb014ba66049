"""Reads what a GGUF file says of itself, so that a file that can't be used is refused before anything is loaded.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Standard library only.
"""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from inference.types import ModelError

TENSOR_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K",
    12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
    20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 29: "IQ1_M", 30: "BF16", 34: "TQ1_0",
    35: "TQ2_0", 39: "MXFP4",
}  # fmt: skip
READABLE = ("F32", "F16", "Q4_0", "Q4_1", "Q8_0")
"""The tensor types that `mx.load` reads and the converter keeps."""

_BLOCKS = {"F32": (1, 4), "F16": (1, 2), "Q4_0": (32, 18), "Q4_1": (32, 20), "Q8_0": (32, 34)}
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufHeader:
    """`tensors` maps names to (type, shape as in the file); `scalars` holds the metadata that are not arrays."""

    scalars: dict[str, object]
    tensors: dict[str, tuple[str, tuple[int, ...]]]


def read_header(path: Path) -> GgufHeader:
    """The header of a whole, readable GGUF file. Raises ModelError with one sentence otherwise."""
    try:
        with path.open("rb") as file:
            header, data_size = _read(file)
            rest = path.stat().st_size - file.tell()
    except FileNotFoundError:
        raise ModelError(f"There is no file {path}.") from None
    except OSError as error:
        raise ModelError(f"{path} can't be read: {error.strerror or error}.") from None
    except (struct.error, UnicodeDecodeError, KeyError, MemoryError, OverflowError):
        raise ModelError(f"{path.name} is not a GGUF file, or it is damaged.") from None
    unreadable = sorted({kind for kind, _ in header.tensors.values()} - set(READABLE))
    if unreadable:
        raise ModelError(
            f"{path.name} holds tensors of type {', '.join(unreadable)}, which MLX can't read: "
            f"take a file whose tensors are all {', '.join(READABLE[:-1])} or {READABLE[-1]}."
        )
    if rest < data_size:
        raise ModelError(f"{path.name} is cut short: {data_size - rest:,} bytes of its tensors are missing.")
    return header


def _read(file: BinaryIO) -> tuple[GgufHeader, int]:
    magic, version = file.read(4), _scalar(file, "<I")
    if magic != b"GGUF" or version not in (2, 3):
        raise KeyError(version)
    tensor_count, pair_count = _scalar(file, "<Q"), _scalar(file, "<Q")
    scalars: dict[str, object] = {}
    for _ in range(int(pair_count)):
        key, kind = _string(file), int(_scalar(file, "<I"))
        if kind == _ARRAY:
            _skip_array(file)
        else:
            scalars[key] = _string(file) if kind == _STRING else _scalar(file, _SCALARS[kind])
    tensors: dict[str, tuple[str, tuple[int, ...]]] = {}
    data_size = 0
    for _ in range(int(tensor_count)):
        name, dimensions = _string(file), int(_scalar(file, "<I"))
        shape = tuple(int(_scalar(file, "<Q")) for _ in range(dimensions))
        number, offset = int(_scalar(file, "<I")), int(_scalar(file, "<Q"))
        kind_name = TENSOR_TYPES.get(number, f"number {number}")
        tensors[name] = (kind_name, shape)
        per_block, block_bytes = _BLOCKS.get(kind_name, (1, 0))
        data_size = max(data_size, offset + _product(shape) // per_block * block_bytes)
    return GgufHeader(scalars=scalars, tensors=tensors), data_size


def _skip_array(file: BinaryIO) -> None:
    kind, count = int(_scalar(file, "<I")), int(_scalar(file, "<Q"))
    if kind == _STRING:
        for _ in range(count):
            file.seek(int(_scalar(file, "<Q")), 1)
    elif kind == _ARRAY:
        for _ in range(count):
            _skip_array(file)
    else:
        file.seek(struct.calcsize(_SCALARS[kind]) * count, 1)


def _scalar(file: BinaryIO, form: str) -> float:
    value: float = struct.unpack(form, file.read(struct.calcsize(form)))[0]
    return value


def _string(file: BinaryIO) -> str:
    length = int(_scalar(file, "<Q"))
    if length > 1 << 24:
        raise KeyError(length)
    return file.read(length).decode("utf-8")


def _product(shape: tuple[int, ...]) -> int:
    result = 1
    for size in shape:
        result *= size
    return result
