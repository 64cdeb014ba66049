"""Types that the parts of the stream builder share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NotRequired, Protocol, cast

from typing_extensions import TypedDict

from responses_api.protocol.objects import CompactedHistory, OutputItem, ResponseError, StreamEvent
from responses_api.protocol.objects.events import ErrorEvent, ResponseEventType, error_event

Outcome = Literal["completed", "incomplete", "failed", "cancelled"]
ItemEnd = Literal["completed", "incomplete"]
IncompleteReason = Literal["max_output_tokens", "content_filter"]


class HistoryCompacted(TypedDict):
    """The end of a successful compaction. Compactions have no stream, so clients never see their events."""

    type: Literal["response.compacted"]
    sequence_number: Literal[0]
    response: CompactedHistory


class FailedResponse(TypedDict):
    """The error of a failed compaction, in place of its answer."""

    status: Literal["failed"]
    error: ResponseError


class CompactionFailed(TypedDict):
    """The end of a failed compaction."""

    type: Literal["response.failed"]
    sequence_number: Literal[0]
    response: FailedResponse


class EndedCompaction(TypedDict):
    """The stored object of an ended compaction."""

    status: Outcome
    output: list[OutputItem]
    """Always empty."""
    usage: NotRequired[None]


Event = StreamEvent | HistoryCompacted | CompactionFailed
EncodedEvent = tuple[str, str]
"""An event's type, empty for one that has none, and its JSON text."""

TERMINAL: Final[Mapping[str, ResponseEventType]] = {
    "completed": "response.completed",
    "incomplete": "response.incomplete",
    "failed": "response.failed",
}
"""The last event of a response by its outcome. A cancelled one ends with an `error`."""


def failure_event(error: ResponseError, sequence_number: int) -> ErrorEvent:
    """The event before `response.failed`."""
    return error_event(error["code"], error["message"], sequence_number=sequence_number)


def cancellation_event(sequence_number: int) -> ErrorEvent:
    """The last event of a response that was cancelled."""
    return error_event("response_cancelled", "The response was cancelled.", sequence_number=sequence_number)


def renumbered(events: Sequence[StreamEvent], first: int) -> list[StreamEvent]:
    """The same events with numbers from `first` on."""
    return [cast("StreamEvent", {**event, "sequence_number": first + place}) for place, event in enumerate(events)]


class OpenItem(Protocol):
    """The output item that is open. Each kind is a class of this shape, with a method for its content."""

    def open(self) -> list[StreamEvent]:
        """The events that add the item."""
        ...

    def close(self, end: ItemEnd) -> list[StreamEvent]:
        """The events up to `response.output_item.done`."""
        ...

    def as_item(self, end: ItemEnd) -> OutputItem:
        """The item as it would be stored if it ended like this now: a copy."""
        ...
