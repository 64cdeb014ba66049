"""The base of all dialects' parsers: text goes in as it comes, pieces come out.

Guarantees, however the text is cut: the same pieces, once neighbours are merged; no marker in a Text or Reasoning; each
CallOpened followed by its CallClosed. White space next to markup belongs to the markup. Text is held back only while it
may be markup, or white space before some.

Malformed markup: a marker without a call after it is dropped, and the text after it is text again, so that no answer
is lost. A call of an undeclared tool is dropped as a whole. A call with malformed arguments is closed as incomplete
where they are, and dropped up to its end.
"""

import contextlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import ClassVar

from inference.calls.custom_input import InputReader
from inference.calls.pieces import (
    CallArguments,
    CallClosed,
    CallOpened,
    Piece,
    Reasoning,
    Span,
    Text,
    merged,
)
from inference.calls.source import EndOfText, Malformed, Markers, Source, Steps
from inference.calls.thinking import Thinking
from inference.calls.tools import Tool

_markers = cache(Markers)


class NotACall(Exception):
    """The marker is not followed by a call, but by text."""


class _Trimmed:
    """Passes text on without the white space at its beginning and its end."""

    def __init__(self, source: Source, emit: Callable[[str, tuple[Span, ...]], None], *, fresh: bool) -> None:
        self.fresh = fresh
        """No character other than white space has come yet."""
        self._source = source
        self._emit = emit
        self._held: list[tuple[str, Span]] = []

    def add(self, text: str) -> None:
        """Take text from the source."""
        at = self._source.position
        if self.fresh:
            at += len(text) - len(text.lstrip())
            text = text.lstrip()
        trimmed = text.rstrip()
        if trimmed:
            self.fresh = False
            self._pass_on((trimmed, (at, at + len(trimmed))))
        if text[len(trimmed) :]:
            self._held.append((text[len(trimmed) :], (at + len(trimmed), at + len(text))))

    def drop(self) -> list[tuple[str, Span]]:
        """Markup follows: return the white space held back, which belongs to it."""
        held, self._held, self.fresh = self._held, [], True
        return held

    def restore(self, held: list[tuple[str, Span]], fresh: bool) -> None:
        """Undo `drop`: it was not markup."""
        self._held, self.fresh = held, fresh

    def end(self) -> None:
        """Pass on the white space held back: no markup follows."""
        if self._held:
            self._pass_on()

    def _pass_on(self, *more: tuple[str, Span]) -> None:
        parts, self._held = [*self._held, *more], []
        self._emit("".join(text for text, _ in parts), tuple(span for _, span in parts))


class Parser:
    """Reads one answer. A dialect defines the markers that begin a call (`starts`) and reads the call (`read_call`)."""

    starts: ClassVar[tuple[str, ...]] = ()
    """The markers that begin a call, or a group of them."""
    ends: ClassVar[tuple[str, ...]] = ()
    """The markers up to which the rest of a malformed call is dropped; alone in the text they are dropped too."""
    inner: ClassVar[tuple[str, ...]] = ()
    """The other markers of calls. Markers that are special tokens are text for the parser, too."""

    def __init__(self, tools: Sequence[Tool] = (), thinking: Thinking | None = None) -> None:
        """Without tools, no text is read as a call."""
        self.source = Source()
        self._tools = {tool.shown: tool for tool in tools}
        self._thinking = thinking
        around_thinking = (thinking.start, thinking.end) if thinking else ()
        self._markers = _markers((*around_thinking, *self.starts, *self.ends) if tools else around_thinking)
        self._call_ends = _markers((*self.starts, *self.ends))
        self._pieces: list[Piece] = []
        self._text = _Trimmed(self.source, lambda text, spans: self.emit(Text(text, spans=spans)), fresh=False)
        self._reasoning = _Trimmed(self.source, lambda text, spans: self.emit(Reasoning(text)), fresh=True)
        self._open: Tool | None = None
        self._input: InputReader | None = None
        self._steps = self._guarded()
        self._ended = False
        self._is_thinking = thinking is not None and thinking.opened

    def feed(self, text: str) -> list[Piece]:
        """Take more text; returns the pieces that it completes."""
        self.source.add(text)
        return self._advance()

    def flush(self) -> list[Piece]:
        """The remaining pieces at the end of the answer; an unfinished call is closed as incomplete."""
        self.source.end()
        return self._advance()

    def _advance(self) -> list[Piece]:
        if not self._ended:
            self._ended = next(self._steps, True) is True
        pieces, self._pieces = self._pieces, []
        return merged(pieces)

    def _guarded(self) -> Steps[None]:
        with contextlib.suppress(EndOfText):
            yield from self.read()
        if self._open is not None:
            self.close_call(complete=False)
        self.at_end()

    def at_end(self) -> None:
        self._text.end()

    # For dialects.

    def emit(self, piece: Piece) -> None:
        self._pieces.append(piece)

    def open_call(self, name: str) -> Tool:
        """Open a call. Raises Malformed for an undeclared tool."""
        tool = self._tools.get(name)
        if tool is None or self._open is not None:
            raise Malformed
        self.source.release()
        self._open = tool
        self._input = InputReader(self.emit) if tool.custom else None
        self.emit(CallOpened(tool.name, tool.namespace, tool.custom))
        return tool

    def arguments(self, text: str) -> None:
        """Add to the arguments of the open call, as JSON."""
        if self._input is not None:
            self._input.feed(text)
        elif text:
            self.emit(CallArguments(text))

    @property
    def may_think(self) -> bool:
        """Whether any text of the answer may be thinking."""
        return self._thinking is not None

    @property
    def is_thinking(self) -> bool:
        """Whether the next text is thinking, as far as is known."""
        return self._is_thinking

    @property
    def in_call(self) -> bool:
        return self._open is not None

    def close_call(self, *, complete: bool = True) -> None:
        self._open = self._input = None
        self.emit(CallClosed(complete))

    # Reading.

    def read(self) -> Steps[None]:
        if self._thinking and self._thinking.opened:
            yield from self._think()
        marker = yield from self._call_at_start()
        while True:
            marker = marker or (yield from self.source.until(self._markers, self._text.add))
            fresh, held = self._text.fresh, self._text.drop()
            if self._thinking and marker == self._thinking.start:
                yield from self._think()
                marker = yield from self._call_at_start()
            elif marker in self.starts:
                self.source.mark()
                try:
                    marker = yield from self._recovering(self.read_call(marker))
                except NotACall:
                    marker = ""
                    self.source.rewind()
                    self._text.restore(held, fresh)
                self.source.release()
            else:
                marker = ""  # an end marker without a beginning

    def _think(self) -> Steps[None]:
        assert self._thinking is not None
        self._reasoning.fresh = self._is_thinking = True
        yield from self.source.until(_markers((self._thinking.end,)), self._reasoning.add)
        self._is_thinking = False
        self._reasoning.drop()
        self._text.drop()

    def _call_at_start(self) -> Steps[str]:
        """Read a call without a marker before it, if there is one; returns the marker that comes next, or ""."""
        if not self._tools:
            return ""
        self.source.mark()
        try:
            marker = yield from self._recovering(self.read_bare_call(), bare=True)
        except (NotACall, EndOfText):
            if not self.source.rewind():
                raise
            return ""
        self._text.drop()
        return marker

    def _recovering(self, call: Steps[None], *, bare: bool = False) -> Steps[str]:
        """Read a call, and the rest of it if it is malformed; returns the marker that comes next, or ""."""
        try:
            yield from call
            return ""
        except Malformed:
            if bare and self.source.is_marked:
                raise NotACall from None
            self.source.release()
            if self._open is not None:
                self.close_call(complete=False)
        marker = yield from self.source.until(self._call_ends, lambda text: None)
        return marker if marker in self.starts else ""

    def read_call(self, marker: str) -> Steps[None]:
        """Read the call after one of `starts`, up to where text may follow. Raises Malformed and NotACall."""
        yield from ()
        raise NotACall

    def read_bare_call(self) -> Steps[None]:
        """Read a call without a marker. Raises Malformed before it opens one if there is none."""
        yield from ()
        raise Malformed
