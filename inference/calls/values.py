"""Values in a model's notation (JSON, Python, Gemma's), copied as JSON while they come.

The output has the form of `json.dumps`, with ", " and ": ", whatever white space the model used.
"""

import ast
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from inference.calls.source import Emit, EndOfText, Malformed, Markers, Source, Steps

Quoted = Callable[[Source, Emit], Steps[None]]
"""A reader of a string after its opening quote, which passes it on as the inside of a JSON string."""

_PLAIN = re.compile(r'[^"\\\x00-\x1f]+')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[^\s,:;=\[\](){}\"'<>|]+")
_JSON_ESCAPES = frozenset('"\\/bfnrt')
_HEX = frozenset("0123456789abcdefABCDEF")
MAX_DEPTH = 200


def escaped(text: str) -> str:
    """Text as the inside of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def json_string(source: Source, emit: Emit) -> Steps[None]:
    """Escapes are passed on as they are; control characters, which JSON forbids and models write, are escaped."""
    while True:
        character = yield from source.peek()
        if plain := source.take_match(_PLAIN):
            emit(plain)
            continue
        yield from source.take()
        if character == '"':
            return
        emit(escaped(character) if character != "\\" else (yield from _json_escape(source)))


def _json_escape(source: Source) -> Steps[str]:
    character = yield from source.take()
    if character in _JSON_ESCAPES:
        return "\\" + character
    if character != "u":
        raise Malformed
    digits = ""
    while len(digits) < 4:
        digits += yield from source.take()
    if not _HEX.issuperset(digits):
        raise Malformed
    return "\\u" + digits


def python_string(quote: str) -> Quoted:
    """A Python string in one kind of quotes."""
    plain = re.compile(rf"[^{quote}\\]+")

    def read(source: Source, emit: Emit) -> Steps[None]:
        while True:
            yield from source.peek()
            if text := source.take_match(plain):
                emit(escaped(text))
                continue
            if (yield from source.take()) == quote:
                return
            literal = "\\" + (yield from source.take())
            for _ in range({"x": 2, "u": 4, "U": 8}.get(literal[1], 0)):
                literal += yield from source.take()
            try:
                emit(escaped(ast.literal_eval(f'"{literal}"') if literal[1] not in "\"'\\\n" else literal[1]))
            except (SyntaxError, ValueError):
                emit(escaped(literal))

    return read


def raw_string(quote: str) -> Quoted:
    """Text without escapes, up to the closing quote."""
    markers = Markers((quote,))

    def read(source: Source, emit: Emit) -> Steps[None]:
        yield from source.until(markers, lambda text: emit(escaped(text)))

    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """How values are written."""

    quotes: Mapping[str, Quoted]
    words: Mapping[str, str] = field(default_factory=lambda: {"true": "true", "false": "false", "null": "null"})
    bare: bool = False
    """Keys need no quotes, and any other word is a string."""
    tuples: bool = False
    """Parentheses make a list; Python's numbers are read; a comma may precede the closing bracket."""


JSON = Notation(quotes={'"': json_string})
PYTHON = Notation(
    quotes={'"': python_string('"'), "'": python_string("'")},
    words={"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"},
    tuples=True,
)


def copy_value(source: Source, emit: Emit, notation: Notation = JSON) -> Steps[None]:
    """Pass one value on as JSON text. Raises Malformed and EndOfText, after the text before the error was passed on."""
    stack: list[str] = []  # the closing brackets of the open ones
    while True:
        yield from source.space()
        opening = yield from _opening(source, emit, notation, stack)
        if opening:
            yield from source.space()
            if not (yield from source.accept(stack[-1])):
                if stack[-1] == "}":
                    yield from _key(source, emit, notation)
                continue
            emit(_json_bracket(stack.pop()))
        while True:  # a value is complete
            if not stack:
                return
            yield from source.space()
            token = yield from source.expect(",", stack[-1])
            if token == "," and notation.tuples:
                yield from source.space()
                token = (yield from source.accept(stack[-1])) or token
            if token == ",":
                break
            emit(_json_bracket(stack.pop()))
        emit(", ")
        if stack[-1] == "}":
            yield from source.space()
            yield from _key(source, emit, notation)


def _json_bracket(closing: str) -> str:
    return "]" if closing == ")" else closing


def _opening(source: Source, emit: Emit, notation: Notation, stack: list[str]) -> Steps[bool]:
    """Read a scalar, or the opening bracket of a list or object (True)."""
    character = yield from source.peek()
    closing = {"{": "}", "[": "]", "(": ")" if notation.tuples else ""}.get(character, "")
    if closing:
        if len(stack) >= MAX_DEPTH:
            raise Malformed
        yield from source.take()
        stack.append(closing)
        emit("{" if character == "{" else "[")
        return True
    if not (yield from _string(source, emit, notation)):
        emit((yield from _scalar(source, notation)))
    return False


def _string(source: Source, emit: Emit, notation: Notation) -> Steps[bool]:
    quote = yield from source.accept(*notation.quotes)
    if not quote:
        return False
    emit('"')
    yield from notation.quotes[quote](source, emit)
    emit('"')
    return True


def _scalar(source: Source, notation: Notation) -> Steps[str]:
    word = yield from source.run(_WORD)
    yield from source.peek()  # at the end of the text a number may be incomplete
    if word in notation.words:
        return notation.words[word]
    if _NUMBER.fullmatch(word):
        return word
    if notation.tuples:
        try:
            return json.dumps(ast.literal_eval(word), allow_nan=False)
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            raise Malformed from None
    if notation.bare and word:
        return json.dumps(word, ensure_ascii=False)
    raise Malformed


def _key(source: Source, emit: Emit, notation: Notation) -> Steps[None]:
    if not (yield from _string(source, emit, notation)):
        word = (yield from source.run(_WORD)) if notation.bare else ""
        if not word:
            yield from source.peek()
            raise Malformed
        emit(json.dumps(word, ensure_ascii=False))
    yield from source.space()
    yield from source.expect(":")
    emit(": ")


def read_string(source: Source) -> Steps[str]:
    """The text of a JSON string."""
    yield from source.expect('"')
    parts: list[str] = []
    yield from json_string(source, parts.append)
    text: str = json.loads(f'"{"".join(parts)}"')
    return text


def whole_value(text: str, notation: Notation = JSON) -> str | None:
    """The JSON text of a complete value; None if the text is not a value."""
    source, parts = Source(), list[str]()
    source.add(text + " ")
    source.end()

    def read() -> Steps[None]:
        yield from copy_value(source, parts.append, notation)
        yield from source.space()
        yield from source.peek()
        raise Malformed

    try:
        for _ in read():
            pass
    except EndOfText:
        value = "".join(parts)
        return value if _is_json(value) else None
    except Malformed:
        return None
    return None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def typed_value(text: str, types: frozenset[str] | None) -> str:
    """The JSON text of a value that was written without quotes, for the declared types of its parameter.

    Text that is not a value of these types is a string. Without types, lists and objects are read as JSON and
    everything else is a string.
    """
    stripped = text.strip()
    value = whole_value(stripped) or whole_value(stripped, PYTHON)
    if value is not None and _fits(json.loads(value), types):
        return value
    return json.dumps(text, ensure_ascii=False)


def _fits(value: Any, types: frozenset[str] | None) -> bool:
    if types is None:
        return isinstance(value, list | dict)
    match value:
        case None:
            return "null" in types
        case bool():
            return "boolean" in types
        case int():
            return bool(types & {"integer", "number"})
        case float():
            return "number" in types or ("integer" in types and value.is_integer())
        case list():
            return "array" in types
        case dict():
            return "object" in types
    return False
