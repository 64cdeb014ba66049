"""The call of a function or of a custom tool in a stream: its text grows by deltas and is stored as generated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NotRequired

from typing_extensions import TypedDict

from responses_api.ids import Prefix
from responses_api.protocol.objects import StreamEvent
from responses_api.protocol.objects.events import CustomToolCallDelta, FunctionCallDelta
from responses_api.protocol.objects.items import CustomToolCallObject, FunctionCallObject, ItemStatus
from responses_api.streaming.events import ItemEnd
from responses_api.streaming.items.item_events import ItemEvents


class _Named(TypedDict):
    status: ItemStatus
    call_id: str
    name: str
    namespace: NotRequired[str]


class ToolCallItem(ABC):
    """Guarantees that the deltas concatenate to the text of the done event and of the item.

    A cut call has no done event of its text.
    """

    prefix: ClassVar[Prefix]

    def __init__(self, events: ItemEvents, *, name: str, namespace: str | None) -> None:
        self._events = events
        self._call_id = events.derived_id("call_")
        self._name = name
        self._namespace = namespace

    def open(self) -> list[StreamEvent]:
        return [self._events.added(self._item("in_progress"))]

    @abstractmethod
    def text(self, delta: str) -> FunctionCallDelta | CustomToolCallDelta:
        """The event that adds text."""

    def close(self, end: ItemEnd) -> list[StreamEvent]:
        events = self._complete() if end == "completed" else []
        return [*events, self._events.done(self.as_item(end))]

    def as_item(self, end: ItemEnd) -> FunctionCallObject | CustomToolCallObject:
        return self._item(end)

    @abstractmethod
    def _complete(self) -> list[StreamEvent]:
        """The events that end the text of a call that was not cut."""

    @abstractmethod
    def _item(self, status: ItemStatus) -> FunctionCallObject | CustomToolCallObject:
        """The item with the text so far."""

    def _named(self, status: ItemStatus) -> _Named:
        named: _Named = {"status": status, "call_id": self._call_id, "name": self._name}
        return named if self._namespace is None else {**named, "namespace": self._namespace}


class FunctionCallItem(ToolCallItem):
    """The text is the arguments. A complete call without any has `{}`."""

    prefix = "fc_"

    def text(self, delta: str) -> FunctionCallDelta:
        self._events.add_delta(delta)
        return {"type": "response.function_call_arguments.delta", **self._events.place(), "delta": delta}

    def _complete(self) -> list[StreamEvent]:
        events: list[StreamEvent] = [] if self._events.text else [self.text("{}")]
        arguments = self._events.text
        events.append({"type": "response.function_call_arguments.done", **self._events.place(), "arguments": arguments})
        return events

    def _item(self, status: ItemStatus) -> FunctionCallObject:
        return {
            "id": self._events.item_id,
            "type": "function_call",
            **self._named(status),
            "arguments": self._events.text,
        }


class CustomToolCallItem(ToolCallItem):
    """The text is the tool's input."""

    prefix = "ctc_"

    def text(self, delta: str) -> CustomToolCallDelta:
        self._events.add_delta(delta)
        return {"type": "response.custom_tool_call_input.delta", **self._events.place(), "delta": delta}

    def _complete(self) -> list[StreamEvent]:
        return [
            {
                "type": "response.custom_tool_call_input.done",
                **self._events.place(),
                "input": self._events.text,
            }
        ]

    def _item(self, status: ItemStatus) -> CustomToolCallObject:
        return {
            "id": self._events.item_id,
            "type": "custom_tool_call",
            **self._named(status),
            "input": self._events.text,
        }
