"""JSON text written in steps, so that no other thread waits for a large value to be written as a whole. Pure.

What comes out is what `orjson.dumps` writes. Small values are written in one step.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

STEP_WEIGHT: Final = 1 << 18
"""What is written at once: characters, and `VALUE_WEIGHT` for each value. A millisecond or two."""
VALUE_WEIGHT: Final = 16
DECODED_BYTES: Final = 1 << 20


def write_json(value: Any, *, step: int = STEP_WEIGHT) -> bytes:
    """The value as JSON text."""
    writer = _Writer(step)
    if writer.weigh(value) <= step:
        return orjson.dumps(value)
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
        """The arrays and objects that are too heavy for one step, by identity."""
        self.pieces: list[bytes] = []

    def weigh(self, value: Any) -> int:
        """How heavy a value is. Remembers which of the arrays and objects in it are too heavy."""
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
        if isinstance(value, str):
            self._write_text(value)
        elif not value or id(value) not in self._heavy:
            self.pieces.append(orjson.dumps(value))
        elif isinstance(value, dict):
            opening = b"{"
            for name, entry in value.items():
                self.pieces += (opening, orjson.dumps(name), b":")
                self.write(entry)
                opening = b","
            self.pieces.append(b"}")
        else:
            opening = b"["
            for entry in value:
                self.pieces.append(opening)
                self.write(entry)
                opening = b","
            self.pieces.append(b"]")

    def _write_text(self, text: str) -> None:
        if len(text) <= self._step:
            self.pieces.append(orjson.dumps(text))
            return
        self.pieces.append(b'"')
        self.pieces += (orjson.dumps(text[at : at + self._step])[1:-1] for at in range(0, len(text), self._step))
        self.pieces.append(b'"')
