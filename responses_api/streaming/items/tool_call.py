"""The call of a function or of a custom tool in a stream: its text grows by deltas and is stored as generated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from responses_api.ids import Prefix
from responses_api.protocol.objects.items import (
    GeneratedCall,
    GeneratedCustomCall,
    GeneratedFunctionCall,
    GeneratedStatus,
)
from responses_api.streaming.events import Event, ItemEnd
from responses_api.streaming.items.item_events import ItemEvents


@dataclass(frozen=True, slots=True, kw_only=True)
class CallKind:
    """Differences between calls of functions and of custom tools."""

    type: str
    prefix: Prefix
    field: str
    """The field of the text in an item and in the done event."""
    events: str
    """The prefix of the types of the text's events."""
    default: str
    """The text of a complete call without any."""


FUNCTION = CallKind(
    type="function_call",
    prefix="fc_",
    field="arguments",
    events="response.function_call_arguments",
    default="{}",
)
CUSTOM = CallKind(
    type="custom_tool_call",
    prefix="ctc_",
    field="input",
    events="response.custom_tool_call_input",
    default="",
)


class ToolCallItem:
    """Guarantees that the deltas concatenate to the text of the done event and of the item.

    A cut call has no done event of its text.
    """

    def __init__(self, events: ItemEvents, *, kind: CallKind, name: str, namespace: str | None) -> None:
        self._events = events
        self._kind = kind
        self._call_id = events.derived_id("call_")
        self._name = name
        self._namespace = namespace

    def open(self) -> list[Event]:
        return [self._events.added(self._item("in_progress"))]

    def text(self, delta: str) -> Event:
        return self._events.delta(f"{self._kind.events}.delta", delta)

    def close(self, end: ItemEnd) -> list[Event]:
        events: list[Event] = []
        if end == "completed":
            if self._kind.default and not self._events.text:
                events.append(self.text(self._kind.default))
            done: dict[str, Any] = {self._kind.field: self._events.text}
            events.append(self._events.event(f"{self._kind.events}.done", **done))
        return [*events, self._events.done(self.as_item(end))]

    def as_item(self, end: ItemEnd) -> GeneratedFunctionCall | GeneratedCustomCall:
        return self._item(end)

    def _item(self, status: GeneratedStatus) -> GeneratedFunctionCall | GeneratedCustomCall:
        call: GeneratedCall = {
            "id": self._events.item_id,
            "type": self._kind.type,
            "status": status,
            "call_id": self._call_id,
            "name": self._name,
        }
        if self._namespace is not None:
            call["namespace"] = self._namespace
        if self._kind is CUSTOM:
            return {**call, "input": self._events.text}
        return {**call, "arguments": self._events.text}
