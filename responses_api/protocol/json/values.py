"""Checks for all JSON values, and the notation of a place within a value.

A value that passes can be stored in PostgreSQL, written back as JSON and walked recursively: no NUL characters, no
unpaired surrogates, no integers beyond 64 bits, no infinities, at most 100 levels of nesting.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from responses_api.errors import InvalidValue

Path = tuple[str | int, ...]
Found = tuple[str, list[str | int]]  # the error, and its place: innermost step first

MAX_DEPTH = 100
MIN_INTEGER = -(2**63)
MAX_INTEGER = 2**63 - 1
MAX_NAME_LENGTH = 64
MAX_QUOTED = 40  # characters of a client's value that a message repeats

_PLAIN = (bool, type(None))


def shorten(name: str) -> str:
    """A name as a message or a path may show it: at most 64 characters."""
    return name if len(name) <= MAX_NAME_LENGTH else name[:MAX_NAME_LENGTH] + "…"


def describe(value: object) -> str:
    """A value in a message: short ones are quoted, long ones named by kind."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        return f"'{value}'" if len(value) <= MAX_QUOTED else f"a string of {len(value)} characters"
    return "an array" if isinstance(value, list) else "an object"


def format_path(path: Path) -> str | None:
    """OpenAI's spelling, `input[0].content[1].text`; None for the body itself."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{shorten(step)}" for step in path)
    return "".join(steps).removeprefix(".") or None


def check_wire_value(body: object) -> None:
    """Raise InvalidValue, naming the place, for a value that could not be stored or written back."""
    error = _find_error(body, 0)
    if error is not None:
        reason, steps = error
        path = tuple(reversed(steps))
        param = format_path(path if len(path) < MAX_DEPTH else path[:1])
        raise InvalidValue(f"`{param}` {reason}." if param else f"The request body {reason}.", param=param)


def _find_error(value: object, depth: int) -> Found | None:
    if isinstance(value, str):
        error = _text_error(value)
        return (f"contains {error}", []) if error else None
    if isinstance(value, list | dict):
        if depth >= MAX_DEPTH:
            return f"is nested deeper than {MAX_DEPTH} levels; flatten it", []
        return _find_error_inside(value, depth)
    reason = _scalar_error(value)
    return (reason, []) if reason else None


def _find_error_inside(value: list[object] | dict[object, object], depth: int) -> Found | None:
    if isinstance(value, dict) and (reason := _name_error(value)):
        return reason, []
    pairs: Iterable[tuple[Any, object]] = value.items() if isinstance(value, dict) else enumerate(value)
    for step, child in pairs:
        if type(child) in _PLAIN or (type(child) is int and MIN_INTEGER <= child <= MAX_INTEGER):
            continue  # saves a call per entry of a long array
        if (error := _find_error(child, depth + 1)) is not None:
            error[1].append(step)
            return error
    return None


def _name_error(value: dict[object, object]) -> str | None:
    for name in value:
        if not isinstance(name, str):
            return "has a name that is not a string; names in JSON are strings"
        if (error := _text_error(name)) is not None:
            return f"has a name with {error}"
    return None


def _scalar_error(value: object) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        fits = MIN_INTEGER <= value <= MAX_INTEGER
        return None if fits else "is an integer beyond 64 bits; send a smaller one"
    if isinstance(value, float):
        return None if math.isfinite(value) else "is not a finite number; send one that JSON can write"
    return "is not a JSON value"


def _text_error(text: str) -> str | None:
    if "\0" in text:
        return "a NUL character (U+0000), which can't be stored; remove it"
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return "an unpaired surrogate, which is not a character; send the whole pair or remove it"
    return None
