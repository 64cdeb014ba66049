"""The reasoning item of a stream: one `reasoning_text` part that grows by deltas. No summary is invented."""

from __future__ import annotations

from collections.abc import Callable

from responses_api.protocol.objects.items import GeneratedReasoning, GeneratedStatus, ReasoningText
from responses_api.streaming.events import Event, ItemEnd
from responses_api.streaming.items.item_events import ItemEvents


class ReasoningItem:
    """Guarantees that the deltas concatenate to the text of the done event and of the part.

    `seal` makes the `encrypted_content` of the finished text; without it, there is none.
    """

    def __init__(self, events: ItemEvents, *, seal: Callable[[str], str] | None) -> None:
        self._events = events
        self._seal = seal

    def open(self) -> list[Event]:
        return [
            self._events.added(self._item("in_progress", [])),
            self._events.event("response.content_part.added", part=_part("")),
        ]

    def text(self, delta: str) -> Event:
        return self._events.delta("response.reasoning_text.delta", delta)

    def close(self, end: ItemEnd) -> list[Event]:
        text = self._events.text
        return [
            self._events.event("response.reasoning_text.done", text=text),
            self._events.event("response.content_part.done", part=_part(text)),
            self._events.done(self.as_item(end)),
        ]

    def as_item(self, end: ItemEnd) -> GeneratedReasoning:
        text = self._events.text
        item = self._item(end, [_part(text)])
        return item if self._seal is None else {**item, "encrypted_content": self._seal(text)}

    def _item(self, status: GeneratedStatus, content: list[ReasoningText]) -> GeneratedReasoning:
        return {"id": self._events.item_id, "type": "reasoning", "status": status, "summary": [], "content": content}


def _part(text: str) -> ReasoningText:
    return {"type": "reasoning_text", "text": text}
