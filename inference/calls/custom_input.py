"""Extracts a custom tool's raw input from the JSON object in which the model writes it."""

import json
import re
from collections.abc import Callable

from inference.calls.pieces import CallInput
from inference.calls.source import Source, Steps
from inference.calls.values import json_string, read_string

_HIGH = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}")
_LOW = re.compile(r"\\u[dD][c-fC-F][0-9a-fA-F]{2}")

_NO_TEXT = re.compile("[\0\ud800-\udfff]")  # not allowed in requests, and so not in answers


class InputReader:
    """Reads the only value of the object, a string, under any name."""

    def __init__(self, emit: Callable[[CallInput], None]) -> None:
        self._emit = emit
        self._source = Source()
        self._steps = self._read()
        self._half = ""  # the first of two escapes of one character

    def feed(self, text: str) -> None:
        """Take more of the object's JSON text. Raises Malformed if the value is not a string."""
        self._source.add(text)
        next(self._steps, None)

    def _read(self) -> Steps[None]:
        yield from self._source.expect("{")
        yield from self._source.space()
        yield from read_string(self._source)
        yield from self._source.space()
        yield from self._source.expect(":")
        yield from self._source.space()
        yield from self._source.expect('"')
        yield from json_string(self._source, self._decode)
        self._decode("")

    def _decode(self, escaped: str) -> None:
        """A run of plain characters, or one escape."""
        if self._half and not _LOW.fullmatch(escaped):
            self._half = ""
            self._emit(CallInput("\N{REPLACEMENT CHARACTER}"))
        if _HIGH.fullmatch(escaped):
            self._half = escaped
        elif escaped:
            text: str = json.loads(f'"{self._half}{escaped}"')
            self._half = ""
            self._emit(CallInput(_NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", text)))
