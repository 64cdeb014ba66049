"""The message item of a stream: one `output_text` part that grows by deltas."""

from __future__ import annotations

from collections.abc import Sequence

from responses_api.protocol.objects import StreamEvent
from responses_api.protocol.objects.events import OutputTextDelta
from responses_api.protocol.objects.items import AssistantMessageObject, ItemStatus, Logprob, OutputText, Phase, Refusal
from responses_api.streaming.events import ItemEnd
from responses_api.streaming.items.item_events import ItemEvents
from responses_api.streaming.json_copy import json_copy


class MessageItem:
    """Guarantees that the deltas, and their log-probabilities, concatenate to those of the done event and the part."""

    def __init__(self, events: ItemEvents, *, phase: Phase | None = None) -> None:
        self.phase = phase
        self._events = events
        self._logprobs: list[Logprob] = []

    def open(self) -> list[StreamEvent]:
        return [self._events.added(self._item("in_progress", [])), self._events.part_added(self._part())]

    def text(self, delta: str, logprobs: Sequence[Logprob] = ()) -> OutputTextDelta:
        entries: list[Logprob] = json_copy(list(logprobs)) if logprobs else []
        self._logprobs += entries
        self._events.add_delta(delta)
        return {
            "type": "response.output_text.delta",
            **self._events.part_place(),
            "delta": delta,
            "logprobs": json_copy(entries) if entries else [],
        }

    def close(self, end: ItemEnd) -> list[StreamEvent]:
        part = self._part()
        return [
            {
                "type": "response.output_text.done",
                **self._events.part_place(),
                "text": part["text"],
                "logprobs": json_copy(part["logprobs"]),
            },
            self._events.part_done(part),
            self._events.done(self.as_item(end)),
        ]

    def as_item(self, end: ItemEnd) -> AssistantMessageObject:
        return self._item(end, [self._part()])

    def _item(self, status: ItemStatus, content: list[OutputText | Refusal]) -> AssistantMessageObject:
        item: AssistantMessageObject = {
            "id": self._events.item_id,
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": content,
        }
        return item if self.phase is None else {**item, "phase": self.phase}

    def _part(self) -> OutputText:
        logprobs = json_copy(self._logprobs)
        return {"type": "output_text", "text": self._events.text, "annotations": [], "logprobs": logprobs}
