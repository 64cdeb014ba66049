"""A call as a JSON object with a name and arguments, as several dialects write it."""

import json

from inference.calls.nesting import loaded
from inference.calls.parser import Parser
from inference.calls.source import Malformed, Steps
from inference.calls.values import copy_value, read_string

NAME = "name"
ARGUMENTS = frozenset(("arguments", "parameters"))
_BEFORE_NAME = frozenset((NAME, "type", "id", *ARGUMENTS))


def read_call_object(parser: Parser, *, only_call_keys: bool = False) -> Steps[None]:
    """`{"name": …, "arguments": {…}}`, keys in any order, other keys ignored; `parameters` also means arguments.

    Arguments stream once the name is known. Raises Malformed; with `only_call_keys` at the first other key before the
    name, so that an object that is not a call is recognised early.
    """
    source = parser.source
    yield from source.expect("{")
    yield from source.space()
    opened, held = False, None
    if not only_call_keys:
        source.release()
    while True:
        key = yield from read_string(source)
        if only_call_keys and not opened and key not in _BEFORE_NAME:
            raise Malformed
        yield from source.space()
        yield from source.expect(":")
        yield from source.space()
        if key == NAME and not opened:
            parser.open_call((yield from read_string(source)))
            opened = True
            parser.arguments(held or "")
        elif key in ARGUMENTS and held is None:
            held = "" if opened else (yield from _held_arguments(parser))
            if opened:
                yield from read_arguments(parser)
        else:
            yield from copy_value(source, lambda text: None)
        yield from source.space()
        if (yield from source.expect(",", "}")) == "}":
            break
        yield from source.space()
    if not opened:
        raise Malformed
    if held is None:
        parser.arguments("{}")
    parser.close_call()


def read_arguments(parser: Parser) -> Steps[None]:
    """A JSON object, passed on as it comes; null is an empty one, and a string may contain one. Raises Malformed."""
    if (yield from parser.source.ahead("{")):
        yield from copy_value(parser.source, parser.arguments)
    else:
        parser.arguments((yield from _held_arguments(parser)))


def _held_arguments(parser: Parser) -> Steps[str]:
    parts: list[str] = []
    yield from copy_value(parser.source, parts.append)
    text = "".join(parts)
    if text == "null":
        return "{}"
    value = loaded(text)
    if isinstance(value, str):
        if value.strip() == "null":
            return "{}"
        value = loaded(value)
        parts = [json.dumps(value, ensure_ascii=False)]
    if not isinstance(value, dict):
        raise Malformed
    return "".join(parts)
