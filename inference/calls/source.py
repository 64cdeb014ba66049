"""Text that comes in pieces, read as if it were complete.

A reader is a generator that yields where it must wait for more text, and so is written as straight code. What it reads
never depends on how the text was cut: each step waits until the available text decides it.
"""

import re
from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]
"""A generator that yields where it waits for more text, and returns a T."""
Emit = Callable[[str], None]

SPACE = re.compile(r"[ \t\r\n]+")


class EndOfText(Exception):
    """The text ended inside of what was being read."""


class Malformed(Exception):
    """The text does not have the expected form."""


class Markers:
    """Strings to search for. None contains another."""

    def __init__(self, markers: Iterable[str]) -> None:
        self.texts = tuple(dict.fromkeys(markers))
        self._pattern = re.compile("|".join(map(re.escape, self.texts)) or r"(?!)")
        self._beginnings = {text[:length] for text in self.texts for length in range(1, len(text))}
        self._longest = max(map(len, self.texts), default=1)

    def search(self, text: str, at: int) -> re.Match[str] | None:
        return self._pattern.search(text, at)

    def partial_length(self, text: str, at: int) -> int:
        """The length of the longest beginning of a marker that the text ends with."""
        for length in range(min(self._longest - 1, len(text) - at), 0, -1):
            if text[-length:] in self._beginnings:
                return length
        return 0


class Source:
    """The text so far, and the position up to which it was read."""

    def __init__(self) -> None:
        self._text = ""
        self._at = 0
        self._mark: int | None = None
        self._ended = False
        self._dropped = 0  # characters before `_text`

    def add(self, text: str) -> None:
        read = self._at if self._mark is None else self._mark
        self._text = self._text[read:] + text
        self._at -= read
        self._dropped += read
        self._mark = None if self._mark is None else 0

    @property
    def position(self) -> int:
        """How many characters were read; while `until` passes text on, the position where that text begins."""
        return self._dropped + self._at

    def end(self) -> None:
        self._ended = True

    def mark(self) -> None:
        """Remember this position for `rewind`."""
        self._mark = self._at

    @property
    def is_marked(self) -> bool:
        return self._mark is not None

    def rewind(self) -> bool:
        """Go back to the marked position; false if there is none."""
        if self._mark is None:
            return False
        self._at, self._mark = self._mark, None
        return True

    def release(self) -> None:
        """Forget the marked position."""
        self._mark = None

    def peek(self) -> Steps[str]:
        """The next character, left in place. Raises EndOfText."""
        while self._at >= len(self._text):
            if self._ended:
                raise EndOfText
            yield
        return self._text[self._at]

    def take(self) -> Steps[str]:
        """The next character. Raises EndOfText."""
        character = yield from self.peek()
        self._at += 1
        return character

    def take_match(self, pattern: re.Pattern[str]) -> str:
        """Take what matches the pattern in the available text, maybe nothing; more of it may follow."""
        match = pattern.match(self._text, self._at)
        if match is None:
            return ""
        self._at = match.end()
        return match[0]

    def run(self, pattern: re.Pattern[str]) -> Steps[str]:
        """Take the longest run of characters that the pattern, a class with `+`, matches; maybe nothing."""
        parts: list[str] = []
        while True:
            parts.append(self.take_match(pattern))
            if self._at < len(self._text) or self._ended:
                return "".join(parts)
            yield

    def space(self) -> Steps[str]:
        """Take white space."""
        return (yield from self.run(SPACE))

    def ahead(self, *options: str) -> Steps[str]:
        """The option that comes next, left in place; "" for none. No option is the beginning of another."""
        longest = max(map(len, options))
        while True:
            rest = self._text[self._at : self._at + longest]
            for option in options:
                if rest.startswith(option):
                    return option
            if self._ended or not any(option.startswith(rest) for option in options):
                return ""
            yield

    def accept(self, *options: str) -> Steps[str]:
        """Like `ahead`, and take it."""
        option = yield from self.ahead(*options)
        self._at += len(option)
        return option

    def expect(self, *options: str) -> Steps[str]:
        """Like `accept`. Raises Malformed for none, and EndOfText if the text ends before that is known."""
        option = yield from self.accept(*options)
        if not option:
            rest = self._text[self._at :]
            if self._ended and any(option.startswith(rest) for option in options):
                raise EndOfText
            raise Malformed
        return option

    def until(self, markers: Markers, emit: Emit) -> Steps[str]:
        """Pass the text up to the first marker on as it comes, and take the marker, which is returned.

        Raises EndOfText, with all text passed on, if there is none.
        """
        while True:
            match = markers.search(self._text, self._at)
            stop = match.start() if match else len(self._text)
            if not match and not self._ended:
                stop -= markers.partial_length(self._text, self._at)
            if stop > self._at:
                emit(self._text[self._at : stop])
            self._at = match.end() if match else stop
            if match:
                return match[0]
            if self._ended:
                raise EndOfText
            yield

    def up_to(self, markers: Markers, emit: Emit) -> Steps[None]:
        """Like `until`, but leave the marker in place."""
        marker = yield from self.until(markers, emit)
        self._at -= len(marker)

    def text_until(self, markers: Markers) -> Steps[str]:
        """The text up to the first marker, which is left in place. Raises EndOfText."""
        parts: list[str] = []
        yield from self.up_to(markers, parts.append)
        return "".join(parts)
