"""Types that the parts of the stream builder share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

Event = dict[str, Any]
EncodedEvent = tuple[str, str]
"""An event's type and its JSON text."""
Outcome = Literal["completed", "incomplete", "failed", "cancelled"]
ItemEnd = Literal["completed", "incomplete"]
IncompleteReason = Literal["max_output_tokens", "content_filter"]


class MakeEvent(Protocol):
    """Makes an event of a type, with the next sequence number."""

    def __call__(self, type: str, /, **fields: Any) -> Event: ...


class OpenItem(Protocol):
    """The output item that is open. Each kind is a class of this shape, with a method for its content."""

    def open(self) -> list[Event]:
        """The events that add the item."""
        ...

    def close(self, end: ItemEnd) -> list[Event]:
        """The events up to `response.output_item.done`."""
        ...

    def as_item(self, end: ItemEnd) -> Mapping[str, Any]:
        """The item as it would be stored if it ended like this now: a copy."""
        ...
