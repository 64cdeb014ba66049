"""The reasoning item of a stream: one `reasoning_text` part that grows by deltas. No summary is invented."""

from __future__ import annotations

from collections.abc import Callable

from responses_api.protocol.objects import StreamEvent
from responses_api.protocol.objects.events import ReasoningTextDelta
from responses_api.protocol.objects.items import ItemStatus, ReasoningObject, ReasoningText
from responses_api.streaming.events import ItemEnd
from responses_api.streaming.items.item_events import ItemEvents


class ReasoningItem:
    """Guarantees that the deltas concatenate to the text of the done event and of the part.

    `seal` makes the `encrypted_content` of the finished text; without it, there is none.
    """

    def __init__(self, events: ItemEvents, *, seal: Callable[[str], str] | None) -> None:
        self._events = events
        self._seal = seal

    def open(self) -> list[StreamEvent]:
        return [self._events.added(self._item("in_progress", [])), self._events.part_added(_part(""))]

    def text(self, delta: str) -> ReasoningTextDelta:
        self._events.add_delta(delta)
        return {"type": "response.reasoning_text.delta", **self._events.part_place(), "delta": delta}

    def close(self, end: ItemEnd) -> list[StreamEvent]:
        text = self._events.text
        return [
            {"type": "response.reasoning_text.done", **self._events.part_place(), "text": text},
            self._events.part_done(_part(text)),
            self._events.done(self.as_item(end)),
        ]

    def as_item(self, end: ItemEnd) -> ReasoningObject:
        text = self._events.text
        item = self._item(end, [_part(text)])
        return item if self._seal is None else {**item, "encrypted_content": self._seal(text)}

    def _item(self, status: ItemStatus, content: list[ReasoningText]) -> ReasoningObject:
        return {"id": self._events.item_id, "type": "reasoning", "status": status, "summary": [], "content": content}


def _part(text: str) -> ReasoningText:
    return {"type": "reasoning_text", "text": text}
