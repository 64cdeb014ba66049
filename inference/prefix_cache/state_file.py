"""A state as a file: the safetensors format, sealed. The tokens come first, then the arrays of the state."""

import json
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from inference.prefix_cache.layout import Snapshot
from inference.prefix_cache.sealed_file import Keys, NotReadable, SealedReader
from inference.prefix_cache.token_tree import WIDTH

_LENGTH = struct.Struct("<Q")
_TOKENS = "tokens"
_DTYPES: dict[str, tuple[Any, type[np.generic]]] = {
    "F32": (mx.float32, np.uint32), "F16": (mx.float16, np.uint16), "BF16": (mx.bfloat16, np.uint16),
    "I64": (mx.int64, np.uint64), "I32": (mx.int32, np.uint32), "I16": (mx.int16, np.uint16), "I8": (mx.int8, np.uint8),
    "U64": (mx.uint64, np.uint64), "U32": (mx.uint32, np.uint32), "U16": (mx.uint16, np.uint16),
    "U8": (mx.uint8, np.uint8), "BOOL": (mx.bool_, np.uint8),
}  # fmt: skip
"""Of each type in safetensors: the type in mlx, and the unsigned one of the same size as which numpy carries it."""
_NAMES = {dtype: name for name, (dtype, _) in _DTYPES.items()}


@dataclass(frozen=True, slots=True)
class Stored:
    """What a file has: the state of the tokens from `start` on, and what is known of windows and at the end."""

    path: Path
    scope: str
    """The name of the scope's directory."""
    tokens: bytes
    """All tokens up to the end of the state."""
    firsts: tuple[int, ...]
    """For each group of layers, the first token whose state is in the file."""
    start: int
    """The first token of the layers that see every token; the end when they are in another file."""
    has_snapshot: bool
    nbytes: int
    holder: str
    """For whom it was written; empty for nobody."""

    @property
    def end(self) -> int:
        return len(self.tokens) // WIDTH


@dataclass(slots=True)
class ReadState:
    """A state that was read. Its arrays are views that the engine's thread evaluates."""

    start: int
    end: int
    firsts: Sequence[int]
    tokens: bytes
    arrays: dict[int, tuple[Any, mx.array]]
    """By part, its type and its numbers."""
    leaves: list[tuple[str, Any, Any]]
    """Of the snapshot: name, type (None for what is not an array) and value."""
    holder: str

    def cut(self, part: int, start: int, end: int) -> mx.array:
        dtype, array = self.arrays[part]
        first = self.end - array.shape[2]
        return mx.contiguous(array.view(dtype)[:, :, start - first : end - first])

    def snapshot(self) -> Snapshot:
        return [(name, value if dtype is None else value.view(dtype)) for name, dtype, value in self.leaves]


def encode(stored: Stored, *, pieces: dict[int, mx.array], snapshot: Snapshot) -> tuple[bytes, list[Any]]:
    """The header and the bytes of a file: `pieces` by part of the layout, and a snapshot. The arrays must have been
    evaluated; the bytes are their own memory.
    """
    tokens = stored.tokens
    named = [(f"part.{number}", piece) for number, piece in pieces.items()]
    named += [(f"snapshot.{name}", leaf) for name, leaf in snapshot if isinstance(leaf, mx.array)]
    state = {
        "scope": stored.scope,
        "file": stored.path.name,
        "start": stored.start,
        "firsts": stored.firsts,
        "holder": stored.holder,
        "snapshot": [[name, None if isinstance(leaf, mx.array) else [leaf]] for name, leaf in snapshot],
    }
    entries: dict[str, Any] = {"__metadata__": {"state": json.dumps(state)}}
    buffers: list[Any] = [np.frombuffer(tokens, dtype=np.uint8)]
    entries[_TOKENS] = {"dtype": "I32", "shape": [len(tokens) // WIDTH], "data_offsets": [0, len(tokens)]}
    offset = len(tokens)
    for name, array in named:
        offsets = [offset, offset + array.nbytes]
        entries[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": offsets}
        memory: Any = array
        buffers.append(np.frombuffer(memoryview(memory), dtype=np.uint8))
        offset += array.nbytes
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return _LENGTH.pack(len(text)) + text, buffers


def read_head(path: Path, keys: Keys, *, scope: str) -> Stored:
    """What a file has, without its arrays. Raises NotReadable and OSError."""
    with path.open("rb") as file:
        reader = SealedReader(file, keys)
        entries, state = _parsed(reader.header)
        if (state["scope"], state["file"]) != (scope, path.name):  # it was moved here
            raise NotReadable
        tokens = reader.read(_size(entries[_TOKENS]))
        return Stored(
            path=path,
            scope=scope,
            tokens=tokens,
            firsts=tuple(state["firsts"]),
            start=state["start"],
            has_snapshot=bool(state["snapshot"]),
            nbytes=path.stat().st_size,
            holder=state["holder"],
        )


def read_state(stored: Stored, keys: Keys) -> ReadState:
    """The state in a file. Raises NotReadable and OSError."""
    with stored.path.open("rb") as file:
        reader = SealedReader(file, keys)
        entries, state = _parsed(reader.header)
        arrays: dict[str, tuple[Any, mx.array]] = {}
        for name, entry in entries.items():
            dtype, carrier = _DTYPES[entry["dtype"]]
            numbers = np.frombuffer(reader.read(_size(entry)), dtype=carrier).reshape(entry["shape"])
            arrays[name] = (dtype, mx.array(numbers))
        reader.end()
    if (state["file"], np.array(arrays[_TOKENS][1], copy=False).tobytes()) != (stored.path.name, stored.tokens):
        raise NotReadable
    leaves = [
        (name, *(arrays[f"snapshot.{name}"] if plain is None else (None, plain[0])))
        for name, plain in state["snapshot"]
    ]
    parts = {int(name.removeprefix("part.")): array for name, array in arrays.items() if name.startswith("part.")}
    return ReadState(stored.start, stored.end, stored.firsts, stored.tokens, parts, leaves, stored.holder)


def _parsed(header: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    entries: dict[str, Any] = json.loads(header[_LENGTH.size :])
    return entries, json.loads(entries.pop("__metadata__")["state"])


def _size(entry: dict[str, Any]) -> int:
    start, end = entry["data_offsets"]
    size = end - start
    assert size == math.prod(entry["shape"]) * np.dtype(_DTYPES[entry["dtype"]][1]).itemsize
    return int(size)
