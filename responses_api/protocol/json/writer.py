"""JSON text written in steps, so that no other thread waits for a large value to be written as a whole. Pure.

The result is what `orjson.dumps` writes. Small values are written in one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson

STEP_WEIGHT: Final = 1 << 18
"""Weight written per step: characters, and `VALUE_WEIGHT` per value. Takes a millisecond or two."""
VALUE_WEIGHT: Final = 16
DECODED_BYTES: Final = 1 << 20


def write_json(value: Any, *, step: int = STEP_WEIGHT) -> bytes:
    """The value as JSON text."""
    writer = _Writer(step)
    writer.weigh(value)
    writer.write(value)
    return b"".join(writer.pieces)


def as_text(written: bytes) -> str:
    """JSON as characters, decoded in steps."""
    pieces, at, size = [], 0, len(written)
    while at < size:
        end = min(at + DECODED_BYTES, size)
        while end < size and written[end] & 0xC0 == 0x80:  # within a character
            end -= 1
        pieces.append(written[at:end].decode())
        at = end
    return "".join(pieces)


class _Writer:
    def __init__(self, step: int) -> None:
        self._step = step
        self._heavy: set[int] = set()
        """Ids of the arrays and objects that are too heavy for one step."""
        self.pieces: list[bytes] = []

    def weigh(self, value: Any) -> int:
        """The weight of a value. Notes which arrays and objects in it are too heavy."""
        if isinstance(value, str):
            return VALUE_WEIGHT + len(value)
        if isinstance(value, dict):
            weight = sum(map(len, value)) + sum(map(self.weigh, value.values()))
        elif isinstance(value, list | tuple):
            weight = sum(map(self.weigh, value))
        else:
            return VALUE_WEIGHT
        weight += VALUE_WEIGHT
        if weight > self._step:
            self._heavy.add(id(value))
        return weight

    def write(self, value: Any) -> None:
        """Add the text of a value to the pieces."""
        if not self._is_heavy(value):
            self.pieces.append(orjson.dumps(value))
        elif isinstance(value, str):
            self._write_text(value)
        elif isinstance(value, dict):
            self._write_object(value)
        else:
            self._write_array(value)

    def _is_heavy(self, value: Any) -> bool:
        return len(value) > self._step if isinstance(value, str) else bool(value) and id(value) in self._heavy

    def _write_object(self, value: dict[str, Any]) -> None:
        opening, weight = b"{", 0
        light: dict[str, Any] = {}
        for name, entry in value.items():
            is_heavy = self._is_heavy(entry)
            if light and (is_heavy or weight > self._step):
                self.pieces += (opening, orjson.dumps(light)[1:-1])
                opening, weight, light = b",", 0, {}
            if is_heavy:
                self.pieces += (opening, orjson.dumps(name), b":")
                self.write(entry)
                opening = b","
            else:
                light[name] = entry
                weight += len(name) + self.weigh(entry)
        self.pieces += (opening, orjson.dumps(light)[1:-1], b"}") if light else (b"}",)

    def _write_array(self, value: Sequence[Any]) -> None:
        opening, weight = b"[", 0
        light: list[Any] = []
        for entry in value:
            is_heavy = self._is_heavy(entry)
            if light and (is_heavy or weight > self._step):
                self.pieces += (opening, orjson.dumps(light)[1:-1])
                opening, weight, light = b",", 0, []
            if is_heavy:
                self.pieces.append(opening)
                self.write(entry)
                opening = b","
            else:
                light.append(entry)
                weight += self.weigh(entry)
        self.pieces += (opening, orjson.dumps(light)[1:-1], b"]") if light else (b"]",)

    def _write_text(self, text: str) -> None:
        self.pieces.append(b'"')
        self.pieces += (orjson.dumps(text[at : at + self._step])[1:-1] for at in range(0, len(text), self._step))
        self.pieces.append(b'"')
