"""What all dialects' parsers share: text goes in as it comes, pieces come out.

Guarantees, however the text is cut: the same pieces, once neighbours are merged; no marker in a Text or Reasoning; each
CallOpened followed by its CallClosed. White space next to markup belongs to the markup. Text is held back only while it
may be markup, or white space before some.

Malformed markup: a marker that nothing of a call follows is dropped, and what comes after it is text again, so that an
answer is never lost. A call of a tool that isn't declared is dropped as a whole. A call whose arguments are malformed
is closed as incomplete where they are, and dropped up to its end.
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


class NoCall(Exception):
    """Nothing of a call follows the marker: what does is text."""


class _Trimmed:
    """Passes text on without the white space before its first and after its last letter."""

    def __init__(self, source: Source, emit: Callable[[str, tuple[Span, ...]], None], *, fresh: bool) -> None:
        self.fresh = fresh
        """The next white space is before the first letter."""
        self._source = source
        self._emit = emit
        self._held: list[tuple[str, Span]] = []

    def add(self, text: str) -> None:
        """Take what the source passes on."""
        at = self._source.position
        if self.fresh:
            at += len(text) - len(text.lstrip())
            text = text.lstrip()
        kept = text.rstrip()
        if kept:
            self.fresh = False
            self._pass_on((kept, (at, at + len(kept))))
        if text[len(kept) :]:
            self._held.append((text[len(kept) :], (at + len(kept), at + len(text))))

    def drop(self) -> list[tuple[str, Span]]:
        """Markup comes: what is held belongs to it."""
        held, self._held, self.fresh = self._held, [], True
        return held

    def restore(self, held: list[tuple[str, Span]], fresh: bool) -> None:
        """It was no markup after all."""
        self._held, self.fresh = held, fresh

    def end(self) -> None:
        """No markup comes any more."""
        if self._held:
            self._pass_on()

    def _pass_on(self, *more: tuple[str, Span]) -> None:
        parts, self._held = [*self._held, *more], []
        self._emit("".join(text for text, _ in parts), tuple(span for _, span in parts))


class Parser:
    """One answer on its way out. A dialect says what begins a call (`starts`) and reads it (`read_call`)."""

    starts: ClassVar[tuple[str, ...]] = ()
    """The markers that begin a call, or a group of them."""
    ends: ClassVar[tuple[str, ...]] = ()
    """The markers up to which the rest of a call is dropped; alone in the text they are dropped too."""
    inner: ClassVar[tuple[str, ...]] = ()
    """The other markers of calls. Any of them may be a special token, which is text for the parser all the same."""

    def __init__(self, tools: Sequence[Tool] = (), thinking: Thinking | None = None) -> None:
        """Without tools nothing is taken for a call."""
        self.source = Source()
        self._tools = {tool.shown: tool for tool in tools}
        self._thinking = thinking
        marks = (thinking.start, thinking.end) if thinking else ()
        self._markers = _markers((*marks, *self.starts, *self.ends) if tools else marks)
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
        """What is known now that this text has come."""
        self.source.add(text)
        return self._advance()

    def flush(self) -> list[Piece]:
        """What is left at the end of the answer; an unfinished call is closed as incomplete."""
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

    # What a dialect may say of the open call.

    def emit(self, piece: Piece) -> None:
        self._pieces.append(piece)

    def open_call(self, name: str) -> Tool:
        """Raises Malformed for a tool that isn't declared."""
        tool = self._tools.get(name)
        if tool is None or self._open is not None:
            raise Malformed
        self.source.release()
        self._open = tool
        self._input = InputReader(self.emit) if tool.custom else None
        self.emit(CallOpened(tool.name, tool.namespace, tool.custom))
        return tool

    def arguments(self, text: str) -> None:
        """More of the open call's arguments, as JSON."""
        if self._input is not None:
            self._input.feed(text)
        elif text:
            self.emit(CallArguments(text))

    @property
    def is_thinking(self) -> bool:
        """Whether what comes next is thinking, as far as can be told."""
        return self._is_thinking

    @property
    def in_call(self) -> bool:
        return self._open is not None

    def close_call(self, *, complete: bool = True) -> None:
        self._open = self._input = None
        self.emit(CallClosed(complete))

    # The reading itself.

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
                except NoCall:
                    marker = ""
                    self.source.rewind()
                    self._text.restore(held, fresh)
                self.source.release()
            else:
                marker = ""  # the end of something that never began

    def _think(self) -> Steps[None]:
        assert self._thinking is not None
        self._reasoning.fresh = self._is_thinking = True
        yield from self.source.until(_markers((self._thinking.end,)), self._reasoning.add)
        self._is_thinking = False
        self._reasoning.drop()
        self._text.drop()

    def _call_at_start(self) -> Steps[str]:
        """Read a call that no marker begins, if one stands here; the marker that comes next, or ""."""
        if not self._tools:
            return ""
        self.source.mark()
        try:
            marker = yield from self._recovering(self.read_bare_call(), bare=True)
        except (NoCall, EndOfText):
            if not self.source.rewind():
                raise
            return ""
        self._text.drop()
        return marker

    def _recovering(self, call: Steps[None], *, bare: bool = False) -> Steps[str]:
        """Read a call, and what is left of it if it is malformed; the marker that comes next, or ""."""
        try:
            yield from call
            return ""
        except Malformed:
            if bare and self.source.is_marked:
                raise NoCall from None
            self.source.release()
            if self._open is not None:
                self.close_call(complete=False)
        found = yield from self.source.until(self._call_ends, lambda text: None)
        return found if found in self.starts else ""

    def read_call(self, marker: str) -> Steps[None]:
        """Read what follows one of `starts`, up to where text may come again. Raises Malformed and NoCall."""
        yield from ()
        raise NoCall

    def read_bare_call(self) -> Steps[None]:
        """Read a call, if one stands here. Raises Malformed before it is opened when none does."""
        yield from ()
        raise Malformed
