"""Values for a location of a body: JSON text of about a given size, which is cheap to make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """``write`` returns JSON text of about so many bytes."""

    name: str
    write: Callable[[int], bytes]


def repeated(unit: str, *, start: str = "", end: str = "", between: str = "") -> Callable[[int], bytes]:
    """The same unit, repeated up to the size, at least once."""
    step = (unit + between).encode()

    def write(size: int) -> bytes:
        count = max(1, (size - len(start) - len(end)) // len(step))
        return start.encode() + step * (count - 1) + unit.encode() + end.encode()

    return write


def text(name: str, unit: str) -> Shape:
    """A string that repeats a unit, which is escaped JSON."""
    return Shape(name, repeated(unit, start='"', end='"'))


def array(name: str, entry: str) -> Shape:
    """An array that repeats an entry."""
    return Shape(name, repeated(entry, start="[", end="]", between=","))


def numbered(template: str, *, start: str, end: str) -> Callable[[int], bytes]:
    """Entries that differ in a number, which replaces `#` in the template."""

    def write(size: int) -> bytes:
        count = max(1, size // (len(template) + 7))
        return f"{start}{','.join(template.replace('#', f'{number:07}') for number in range(count))}{end}".encode()

    return write


def nested(opening: str, middle: str, closing: str, *, start: str = "", end: str = "") -> Callable[[int], bytes]:
    """Nested levels."""

    def write(size: int) -> bytes:
        depth = max(1, (size - len(start) - len(middle) - len(end)) // (len(opening) + len(closing)))
        return f"{start}{opening * depth}{middle}{closing * depth}{end}".encode()

    return write


LETTERS = text("letters", "a")
DIGITS = Shape("digits", repeated("9"))
TEXTS = (
    LETTERS,
    text("words", "a "),
    text("lines", "\\n"),
    text("escapes", "\\u00e9"),
    text("pairs of surrogates", "\\ud83d\\ude00"),
    text("emoji", "🙂"),
    text("control tokens", "<|im_end|>"),
    text("markers", "<tool_call><think>"),
    text("open brackets", "[^"),
    text("open groups", "(a|"),
    text("quotes", '\\"'),
    text("backslashes", "\\\\"),
    text("base64", "QUJD"),
    Shape("JSON text, deep", nested("[", "", "]", start='"', end='"')),
    Shape("JSON text, open", repeated('{\\"a\\":', start='"', end='"')),
    Shape("JSON text, wide", repeated("1", between=",", start='"[', end=']"')),
)
NUMBERS = (
    DIGITS,
    Shape("minus digits", repeated("9", start="-")),
    Shape("fraction", repeated("1", start="0.")),
    Shape("exponent", repeated("9", start="1e")),
)
DEEP = (
    Shape("deep arrays", nested("[", "", "]")),
    Shape("deep objects", nested('{"a":', "1", "}")),
    Shape("deep items", nested('[{"content":', "1", "}]")),
)
WIDE = (
    array("many numbers", "1"),
    array("many arrays", "[]"),
    array("many objects", "{}"),
    array("many strings", '"a"'),
    array("many nulls", "null"),
    array("many incomplete items", '{"type":"message","role":"user"}'),
    Shape("many keys", numbered('"#":1', start="{", end="}")),
    Shape("repeated key", repeated('"a":1', start="{", end="}", between=",")),
    Shape("long key", repeated("a", start='{"', end='":1}')),
)
ANY = (LETTERS, DIGITS, *DEEP, *WIDE)
