"""Converts an engine's chunks to wire events: the dialect's parser, then the stream builder. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from inference.calls import (
    CallArguments,
    CallClosed,
    CallInput,
    CallOpened,
    Parser,
    Piece,
    Reasoning,
    Text,
    merged,
)
from inference.types import Chunk
from responses_api.protocol.objects import StreamEvent
from responses_api.streaming.builder import ResponseBuilder
from responses_api.streaming.logprobs import LogprobAligner


class AnswerWriter:
    """Guarantees the same events however the engine splits its text, except for the ends of deltas.

    Text that is fed together is one delta, however many tokens it has.
    """

    def __init__(self, builder: ResponseBuilder, parser: Parser, *, logprobs: bool = False) -> None:
        self._builder = builder
        self._parser = parser
        self._aligner = LogprobAligner() if logprobs else None
        self.reasoning_tokens = 0
        """Tokens of thinking so far, its markers included."""
        self.is_cut_in_call = False
        """Whether a call was opened but not completed."""

    def feed(self, chunks: Sequence[Chunk]) -> list[StreamEvent]:
        """The events of the next chunks."""
        parser = self._parser
        if self._aligner is not None:
            for chunk in chunks:
                self._aligner.add(chunk.logprobs)
        if not parser.may_think:
            text = "".join([chunk.text for chunk in chunks])
            return self._write(parser.feed(text)) if text else []
        pieces: list[Piece] = []
        for chunk in chunks:  # one by one, to count the tokens of thinking
            was_thinking = parser.is_thinking
            if chunk.text:
                pieces += parser.feed(chunk.text)
            if was_thinking or parser.is_thinking:
                self.reasoning_tokens += len(chunk.tokens)
        return self._write(merged(pieces))

    def flush(self) -> list[StreamEvent]:
        """The events of text that was held back, at the end of the answer."""
        return self._write(self._parser.flush())

    def _write(self, pieces: list[Piece]) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for piece in pieces:
            events += self._events(piece)
        return events

    def _events(self, piece: Piece) -> list[StreamEvent]:
        builder = self._builder
        match piece:
            case Text(text, phase, spans):
                entries = self._aligner.take(spans) if self._aligner is not None else ()
                return builder.text(text, phase=phase, logprobs=entries)
            case Reasoning(text):
                return builder.reasoning(text)
            case CallOpened(name, namespace, custom):
                return builder.open_call(name, namespace=namespace, custom=custom)
            case CallArguments(text) | CallInput(text):
                return builder.call_text(text)
            case CallClosed(complete):
                self.is_cut_in_call = self.is_cut_in_call or not complete
                return builder.close_call(complete=complete)
