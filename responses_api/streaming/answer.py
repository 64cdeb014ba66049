"""One answer: converts chunks of an engine to events, and at the end to the object that is stored. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from inference.calls import Parser
from inference.types import Chunk
from responses_api.protocol.objects import Response, ResponseError, Usage
from responses_api.streaming.answer_writer import AnswerWriter
from responses_api.streaming.builder import ResponseBuilder
from responses_api.streaming.compaction import CompactionBuilder
from responses_api.streaming.events import EndedCompaction, Event, Outcome
from responses_api.streaming.token_counts import TokenCounts


class Answer:
    """The stream of a builder, fed from an engine. The same chunks give the same events, and the same ``tokens``.

    ``parser`` reads the engine's text; without one there is nothing to generate. Methods are called in the order
    `open`, `feed`…, `flush`, `end`, and `fail_instead` where the end can't be stored.
    """

    def __init__(
        self, builder: ResponseBuilder | CompactionBuilder, *, parser: Parser | None = None, logprobs: bool = False
    ) -> None:
        self._builder = builder
        self._writer: AnswerWriter | None = None
        if parser is not None:
            assert isinstance(builder, ResponseBuilder)
            self._writer = AnswerWriter(builder, parser, logprobs=logprobs)
        self.counts = TokenCounts()
        self.tokens: list[int] = []
        """All tokens so far: an engine that is given them resumes after them."""
        self.has_started = False
        """Whether an engine has started on it."""

    def open(self) -> Sequence[Event]:
        """The events before anything is generated."""
        return self._builder.start()

    def add_compaction(self, encrypted_content: str, *, tokens: tuple[int, int] | None) -> Sequence[Event]:
        """The item of a compacted history, see :meth:`ResponseBuilder.compaction`."""
        assert isinstance(self._builder, ResponseBuilder)
        return self._builder.compaction(encrypted_content, tokens=tokens)

    def feed(self, chunks: Sequence[Chunk]) -> Sequence[Event]:
        """The events of the next chunks."""
        self.has_started = self.has_started or any(chunk.started for chunk in chunks)
        self.counts.count(chunks)
        for chunk in chunks:
            self.tokens += chunk.tokens
        return self._writer.feed(chunks) if self._writer is not None else []

    def flush(self) -> Sequence[Event]:
        """The events of text that was held back, when the engine has ended."""
        return self._writer.flush() if self._writer is not None else []

    def end(self, outcome: Outcome, *, message: str, usage: Usage, completed_at: int) -> Sequence[Event]:
        """The last events; ``message`` says why, if the response failed."""
        error: ResponseError = {"code": "server_error", "message": message}
        return self._builder.finish(outcome, error=error, usage=usage, completed_at=completed_at)

    def fail_instead(self, message: str, *, usage: Usage | None) -> Sequence[Event]:
        """Replace the events of `end` by a failure whose object has no output."""
        return self._builder.fail_instead({"code": "server_error", "message": message}, usage=usage)

    def snapshot(self) -> Response | EndedCompaction:
        """The object as it would be stored now; after the end, the final one."""
        return self._builder.snapshot()

    @property
    def is_generated(self) -> bool:
        """Whether an engine generates it."""
        return self._writer is not None

    @property
    def reasoning_tokens(self) -> int:
        """Tokens of thinking so far."""
        return self._writer.reasoning_tokens if self._writer is not None else 0

    @property
    def is_cut_in_call(self) -> bool:
        """Whether a call was opened but not completed."""
        return self._writer is not None and self._writer.is_cut_in_call
