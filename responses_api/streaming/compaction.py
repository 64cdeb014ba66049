"""The end of a `/responses/compact` request, with the methods of the stream builder: it has no stream."""

from __future__ import annotations

from responses_api.protocol.objects import ResponseError, Usage
from responses_api.protocol.objects.compaction import UncountedHistory
from responses_api.streaming.events import CompactionFailed, EndedCompaction, HistoryCompacted, Outcome


class CompactionBuilder:
    """`base` is the whole answer except for its usage."""

    def __init__(self, base: UncountedHistory) -> None:
        self._answer = base
        self._status: Outcome = "completed"

    def start(self) -> list[HistoryCompacted | CompactionFailed]:
        """Nothing is published before the end."""
        return []

    def finish(
        self, outcome: Outcome, *, usage: Usage | None, error: ResponseError, completed_at: int | None = None
    ) -> list[HistoryCompacted | CompactionFailed]:
        """The only event: the answer or an error."""
        self._status = outcome
        if outcome == "completed":
            assert usage is not None
            return [{"type": "response.compacted", "sequence_number": 0, "response": {**self._answer, "usage": usage}}]
        return [{"type": "response.failed", "sequence_number": 0, "response": {"status": "failed", "error": {**error}}}]

    def fail_instead(
        self, error: ResponseError, *, usage: Usage | None = None
    ) -> list[HistoryCompacted | CompactionFailed]:
        """The error event, in place of an answer that couldn't be sent."""
        return self.finish("failed", usage=usage, error=error)

    def snapshot(self) -> EndedCompaction:
        """The stored object: the status, without any content."""
        return {"status": self._status, "output": []}
