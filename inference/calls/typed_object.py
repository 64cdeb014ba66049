"""Builds a call's arguments from parameters written as text, one by one, by their declared types."""

import json

from inference.calls.parser import Parser
from inference.calls.source import Markers, Steps
from inference.calls.tools import Tool, parameter_types
from inference.calls.values import escaped, typed_value

_STRING = frozenset(("string",))


class TypedObject:
    """The JSON object of one call, passed on while it grows."""

    def __init__(self, parser: Parser, tool: Tool, *, line_breaks: bool, untyped_as_string: bool) -> None:
        """line_breaks: tags are on lines of their own, so that the line breaks next to a value are not part of it;
        untyped_as_string: an undeclared parameter is a string, and streams as one.
        """
        self._line_breaks = line_breaks
        self._parser = parser
        self._tool = tool
        self._untyped_as_string = untyped_as_string
        self._names: set[str] = set()

    def close(self) -> None:
        self._parser.arguments("}" if self._names else "{}")

    def is_string(self, name: str) -> bool:
        declared = self._tool.schema.get("properties")
        if self._untyped_as_string and not (isinstance(declared, dict) and name in declared):
            return True
        return parameter_types(self._tool, name) == _STRING

    def read_value(self, name: str, end: Markers, *, as_string: bool | None = None) -> Steps[None]:
        """Read a parameter's text up to a marker, which is left in place, and pass it on as a value of its type.

        `as_string` says whether the text itself declares a string. A second value of a name is dropped: an object has
        each name once.
        """
        source = self._parser.source
        if self._line_breaks:
            yield from source.accept("\n")
        if name in self._names:
            yield from source.text_until(end)
            return
        start = ("{" if not self._names else ", ") + json.dumps(name, ensure_ascii=False) + ": "
        self._names.add(name)
        if self.is_string(name) if as_string is None else as_string:
            self._parser.arguments(start + '"')
            yield from self._string(end)
            self._parser.arguments('"')
            return
        text = yield from source.text_until(end)
        types = parameter_types(self._tool, name)
        if as_string is False and types is None:
            types = frozenset(("string", "number", "boolean", "null", "array", "object"))
        self._parser.arguments(start + typed_value(text.removesuffix("\n" if self._line_breaks else ""), types))

    def _string(self, end: Markers) -> Steps[None]:
        if not self._line_breaks:
            yield from self._parser.source.up_to(end, lambda text: self._parser.arguments(escaped(text)))
            return
        held = ""

        def emit(text: str) -> None:
            nonlocal held
            text = held + text
            held = "\n" if text.endswith("\n") else ""
            self._parser.arguments(escaped(text.removesuffix("\n")))

        yield from self._parser.source.up_to(end, emit)
