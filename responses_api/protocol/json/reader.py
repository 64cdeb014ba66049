"""JSON values read in steps, so that no other thread waits for a large text to be parsed as a whole. Pure.

A parser in C blocks the interpreter until it is done, and its objects take many times the bytes of the text. Here a
text is scanned in windows and parsed by orjson in runs of whole elements, each of a few milliseconds. Values are
counted before they are created. The result is what `orjson.loads` returns for the whole text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from responses_api.errors import InvalidJson, RequestTooLarge

WHITE_SPACE: Final = b" \t\n\r"
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_STRING = rb'"[^"]*+"'
_FLAT = rb'[\[{](?:[^"\[\]{}]++|%b)*+[\]}]' % _STRING
_SEGMENT = re.compile(rb'(?:[^"\[\]{},]++|%b|%b|(,))*+([\[\]{}]|"|\Z)' % (_STRING, _FLAT))
"""Up to the next bracket, or a quote that the window does not close. Arrays and objects without others inside are
skipped, as are strings, scalars and commas; the last comma is captured."""
_STRINGS = re.compile(_STRING)
_OPENING_HALF = re.compile(rb"\\u[dD][89abAB]..", re.DOTALL)
_CLOSED_BY: Final = {b"[": b"]", b"{": b"}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingLimits:
    """Limits on values that multiply in memory, and the sizes of the steps."""

    max_values: int
    """Commas and opening brackets, each counted as one value: an empty array or object counts as two."""
    max_wide_bytes: int = 8 << 20
    """Bytes of one string with characters beyond ASCII: in memory each character may take four bytes."""
    max_gap_bytes: int = 4 << 20
    """Bytes of one number, of one run of white space, or of one name of an object."""
    max_depth: int = 1024
    """Levels of arrays and objects, as in orjson."""
    direct_bytes: int = 1 << 20
    """A text of at most this many bytes and `direct_values` values is parsed in one step."""
    direct_values: int = 1 << 15
    run_bytes: int = 1 << 15
    """Bytes scanned, and parsed, per step."""
    string_bytes: int = 1 << 20
    """A longer string is decoded in pieces of this size."""


DIRECT_STORED_BYTES: Final = 1 << 16
_STORED_LIMITS: Final = ReadingLimits(
    max_values=sys.maxsize, max_wide_bytes=sys.maxsize, max_gap_bytes=sys.maxsize, direct_bytes=DIRECT_STORED_BYTES
)


def read_json(text: bytes, *, limits: ReadingLimits, between: Callable[[], None] = lambda: None) -> Any:
    """The value of a JSON text, as `orjson.loads` reads it; a byte order mark is skipped.

    ``between`` is called between two steps; an exception from it ends the reading. Raises :class:`InvalidJson`, or
    :class:`RequestTooLarge` for more values than ``limits`` allow.
    """
    if text.startswith(BYTE_ORDER_MARK):
        text = text[len(BYTE_ORDER_MARK) :]
    if len(text) <= limits.direct_bytes and most_values(text) <= min(limits.direct_values, limits.max_values):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise InvalidJson(_sentence(str(error))) from None
    return _Reader(text, limits, between).read()


def read_stored(text: str) -> Any:
    """The value of a JSON text from our own store, of any size, read in steps."""
    if len(text) <= DIRECT_STORED_BYTES:
        return orjson.loads(text)
    return read_json(text.encode(), limits=_STORED_LIMITS)


def most_values(text: bytes) -> int:
    """Upper bound on the number of values of a JSON text: commas and brackets within strings count, too."""
    return 1 + text.count(b",") + text.count(b"[") + text.count(b"{")


def _sentence(reason: str) -> str:
    return f"The body is not valid JSON: {reason}. Send a JSON object, encoded as UTF-8."


class _Frame:
    """An open array or object. It gets a value of its own only when it is too large to be parsed with its parent."""

    __slots__ = ("closing", "element", "key", "run", "start", "value", "whole")

    def __init__(self, start: int, opening: bytes) -> None:
        self.start = start
        self.closing = _CLOSED_BY[opening]
        self.run = start + 1
        """Start of the elements that are not parsed yet."""
        self.element = start + 1
        """Start of the current element."""
        self.value: list[Any] | dict[str, Any] | None = None
        self.key = ""
        """Name of the element that is being read by itself."""
        self.whole = False
        """Whether the current element has been read, so that only white space may follow."""


class _Reader:
    def __init__(self, text: bytes, limits: ReadingLimits, between: Callable[[], None]) -> None:
        self._text = text
        self._limits = limits
        self._between = between
        root = _Frame(-1, b"[")
        root.value = []
        self._frames = [root]
        self._made = 0
        """Number of frames that have a value: the outermost ones."""
        self._values = 1

    def read(self) -> Any:
        size = len(self._text)
        at = gap = 0
        while at < size:
            self._between()
            window = _masked(self._text[at : at + self._limits.run_bytes])
            following = at + len(window)
            self._count(window)
            for match in _SEGMENT.finditer(window):
                comma, token = match.start(1), match[2]
                if comma >= 0:
                    gap = at + comma
                    self._take_comma(gap)
                if not token:
                    break
                place = at + match.start(2)
                if token == b'"':  # a string that ends beyond the window
                    following = self._end_of_string(place)
                    if following - place > self._limits.string_bytes and self._is_value(place):
                        self._read_string(place, following)
                        gap = following
                    break
                gap = place
                if token in _CLOSED_BY:
                    self._open(token, place)
                else:
                    self._close(token, place)
            at = following
            if at - gap > self._limits.max_gap_bytes:
                raise self._error("a number, a name or white space that is too long", gap)
            self._parse_long_runs()
        return self._end()

    # Segments

    def _count(self, window: bytes) -> None:
        self._values += most_values(_STRINGS.sub(b"", window).partition(b'"')[0]) - 1
        if self._values > self._limits.max_values:
            raise RequestTooLarge(
                f"The request body has more than the {self._limits.max_values} JSON values that this server accepts "
                "(RESPONSES_BODY_MAX_VALUES). Send less."
            )

    def _take_comma(self, place: int) -> None:
        """Take the last comma of a segment."""
        frame = self._frames[-1]
        if len(self._frames) == 1:
            raise self._error("unexpected content after document", place)
        if frame.whole:
            first = self._text.index(b",", frame.run)
            self._expect_nothing(frame.run, first)
            frame.run, frame.whole = first + 1, False
        frame.element = place + 1

    def _open(self, bracket: bytes, place: int) -> None:
        if self._frames[-1].whole:
            raise self._error("expected ',' or a closing bracket", place)
        if len(self._frames) > self._limits.max_depth:
            raise self._error("Recursion limit reached", place)
        self._frames.append(_Frame(place, bracket))

    def _close(self, bracket: bytes, place: int) -> None:
        frames = self._frames
        frame = frames[-1]
        if bracket != frame.closing or len(frames) == 1:
            raise self._error(f"unexpected '{bracket.decode()}'", place)
        if frame.value is None and (place - frame.start >= self._limits.run_bytes or len(frames) == 2):
            self._make_frames(len(frames))
        if frame.value is not None:
            self._finish(frame, place)
        frames.pop()

    def _parse_long_runs(self) -> None:
        for number, frame in enumerate(self._frames):
            if frame.element - frame.run >= self._limits.run_bytes:
                self._make_frames(number + 1)
                self._parse_run(frame, frame.element - 1)
                frame.run = frame.element

    # Frames

    def _make_frames(self, count: int) -> None:
        """Give the outermost ``count`` arrays and objects their values, without their last elements."""
        frames = self._frames
        for number in range(self._made + 1, count):
            self._begin_element(frames[number - 1], frames[number].start)
            frames[number].value = [] if frames[number].closing == b"]" else {}
            self._made = number

    def _begin_element(self, frame: _Frame, start: int) -> None:
        """Parse the complete elements of a frame, and the name of the element whose value begins at ``start``."""
        if frame.run < frame.element:
            self._parse_run(frame, frame.element - 1)
            frame.run = frame.element
        if frame.closing == b"]":
            self._expect_nothing(frame.element, start)
            return
        (frame.key,) = self._parse(b"{%b[]}", frame.element, start)

    def _end_element(self, frame: _Frame, value: Any, end: int) -> None:
        """Give a frame the element that was read by itself and ends before ``end``."""
        if isinstance(frame.value, dict):
            frame.value[frame.key] = value
        else:
            assert frame.value is not None
            frame.value.append(value)
        frame.run = frame.element = end
        frame.whole = True

    def _parse_run(self, frame: _Frame, end: int) -> None:
        """Parse the elements of a frame up to ``end``: at least one."""
        form = b"[%b]" if frame.closing == b"]" else b"{%b}"
        values = self._parse(form, frame.run, end)
        if not values:
            raise self._error("expected a value", end)
        if isinstance(frame.value, dict):
            frame.value.update(values)
        else:
            assert frame.value is not None
            frame.value.extend(values)

    def _finish(self, frame: _Frame, place: int) -> None:
        if frame.whole:
            self._expect_nothing(frame.run, place)
        elif frame.run > frame.start + 1 or self._text[frame.run : place].strip(WHITE_SPACE):
            self._parse_run(frame, place)
        self._made -= 1
        self._end_element(self._frames[-2], frame.value, place + 1)

    def _end(self) -> Any:
        if len(self._frames) > 1:
            raise self._error("unexpected end of data", len(self._text))
        root = self._frames[0]
        assert isinstance(root.value, list)
        if root.whole:
            self._expect_nothing(root.run, len(self._text))
        else:  # a scalar
            root.value.append(self._parse(b"%b", 0, len(self._text)))
        return root.value[0]

    # Strings

    def _is_value(self, start: int) -> bool:
        """Whether a string is a value: a name begins where an element does."""
        frame = self._frames[-1]
        return frame.closing == b"]" or bool(self._text[frame.element : start].strip(WHITE_SPACE))

    def _read_string(self, start: int, end: int) -> None:
        """Read a long string by itself."""
        frame = self._frames[-1]
        self._make_frames(len(self._frames))
        self._begin_element(frame, start)
        self._end_element(frame, self._decode(start + 1, end - 1), end)

    def _end_of_string(self, start: int) -> int:
        """The place after the closing quote."""
        at, size = start + 1, len(self._text)
        while at < size:
            self._between()
            window = self._text[at : at + max(self._limits.run_bytes, 2)]
            masked = window.replace(b"\\\\", b"\0\1")
            if masked.endswith(b"\\") and at + len(window) < size:
                masked = masked[:-1]  # the escaped character is in the next window
            end = masked.replace(b'\\"', b"\0\1").find(b'"')
            if end >= 0:
                return at + end + 1
            at += len(masked)
        raise self._error("unexpected end of data", size)

    def _decode(self, start: int, end: int) -> str:
        """The text of a string, between its quotes, decoded in pieces."""
        pieces = []
        is_wide = False
        at = start
        while at < end:
            self._between()
            cut = self._cut(at, min(end, at + self._limits.string_bytes), end)
            piece: str = self._parse(b'"%b"', at, cut)
            is_wide = is_wide or not piece.isascii()
            if is_wide and end - start > self._limits.max_wide_bytes:
                raise RequestTooLarge(
                    f"The request body has a string of {end - start} bytes with characters beyond ASCII, and at most "
                    f"{self._limits.max_wide_bytes} are accepted. Send less, or several strings."
                )
            pieces.append(piece)
            at = cut
        return "".join(pieces)

    def _cut(self, start: int, limit: int, end: int) -> int:
        """The last place up to ``limit`` that cuts no character and no pair of escapes in two."""
        if limit == end:
            return end
        window = self._text[start:limit].replace(b"\\\\", b"\0\1")
        cut = limit
        if window.endswith(b"\\"):
            cut -= 1
        last = window.rfind(b"\\u", -6)
        if last >= 0 and last + 6 > len(window):
            cut = start + last
        if _OPENING_HALF.fullmatch(window, cut - start - 6, cut - start):
            cut -= 6
        while cut > start and self._text[cut] & 0xC0 == 0x80:
            cut -= 1
        return cut if cut > start else limit

    # Parsing

    def _parse(self, form: bytes, start: int, end: int) -> Any:
        try:
            return orjson.loads(form % self._text[start:end])
        except orjson.JSONDecodeError as error:
            before = error.doc[: error.pos].encode(errors="surrogatepass")
            place = start + len(before) - form.index(b"%")
            raise self._error(error.msg, min(max(place, start), end)) from None

    def _expect_nothing(self, start: int, end: int) -> None:
        if self._text[start:end].strip(WHITE_SPACE):
            raise self._error("unexpected character", start)

    def _error(self, reason: str, place: int) -> InvalidJson:
        return InvalidJson(_sentence(f"{reason}, near byte {place}"))


def _masked(window: bytes) -> bytes:
    """A window that begins outside of a string, or with one, without escaped quotes: those left delimit strings."""
    masked = window.replace(b"\\\\", b"\0\1")
    return masked.replace(b'\\"', b"\0\1")
