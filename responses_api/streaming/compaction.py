"""The end of a `/responses/compact` request, with the methods of the stream builder: it has no stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from responses_api.protocol.objects import ResponseError, Usage
from responses_api.streaming.events import Event, Outcome


class CompactionBuilder:
    """`base` is the whole answer except for its usage."""

    def __init__(self, base: Mapping[str, Any]) -> None:
        self._answer = base
        self._status: Outcome = "completed"

    def start(self) -> list[Event]:
        """Nothing is published before the end."""
        return []

    def finish(
        self, outcome: Outcome, *, usage: Usage | None, error: ResponseError, completed_at: int | None = None
    ) -> list[Event]:
        """The only event: the answer or an error."""
        self._status = outcome
        if outcome == "completed":
            return [_event("response.compacted", {**self._answer, "usage": usage})]
        return [_event("response.failed", {"status": "failed", "error": dict(error)})]

    def fail_instead(self, error: ResponseError, *, usage: Usage | None = None) -> list[Event]:
        """The error event, in place of an answer that couldn't be sent."""
        return self.finish("failed", usage=usage, error=error)

    def snapshot(self) -> dict[str, Any]:
        """The stored object: the status, without any content."""
        return {"status": self._status, "output": []}


def _event(type: str, response: dict[str, Any]) -> Event:
    return {"type": type, "sequence_number": 0, "response": response}
