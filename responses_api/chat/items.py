"""The messages of a chat as items of an input. Pure.

A message becomes one item; an earlier answer becomes its reasoning, its text and its calls, in this order. Each output
belongs to a call: the nearest earlier one of its id that has no output yet, since some clients use the same ids again
in every turn. The ids of the items are unique.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from responses_api.chat.content import ChatAnswerRefusal, ChatImage, ChatText
from responses_api.chat.messages import (
    ChatAssistantMessage,
    ChatInstructions,
    ChatToolMessage,
    ChatUserMessage,
    Message,
    ReplayedCustomCall,
    ReplayedFunctionCall,
)
from responses_api.chat.places import Place
from responses_api.errors import InvalidValue
from responses_api.protocol.items.pairing import TOOL_PAIRS
from responses_api.protocol.json.values import describe, shorten

Json = dict[str, Any]
Fields = Mapping[str, str]

FUNCTION_CALL: Final[Fields] = {"call_id": "id", "name": "function.name", "arguments": "function.arguments"}
CUSTOM_CALL: Final[Fields] = {"call_id": "id", "name": "custom.name", "input": "custom.input"}
OUTPUT: Final[Fields] = {"call_id": "tool_call_id", "output": "content"}
REASONING: Final[Fields] = {"content[0].text": "", "content[0]": "", "content": ""}
"""Names within an item, and the names within the message or the call that it was made of."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of an earlier answer. The id is the client's; the item may have another one."""

    id: str
    place: str
    item: Json


class _OpenCalls:
    """The calls that have no output yet: by their id, those of one message together."""

    def __init__(self) -> None:
        self._by_id: dict[str, list[deque[_Call]]] = {}

    def add(self, calls: Iterable[_Call]) -> None:
        """Add the calls of one message."""
        same_id: dict[str, deque[_Call]] = {}
        for call in calls:
            same_id.setdefault(call.id, deque()).append(call)
        for call_id, together in same_id.items():
            self._by_id.setdefault(call_id, []).append(together)

    def first(self) -> _Call | None:
        """A call without an output, if there is one."""
        return next((messages[0][0] for messages in self._by_id.values()), None)

    def take(self, call_id: str) -> _Call | None:
        """The call of this id that is nearest, and of one message the first. It has its output then."""
        messages = self._by_id.get(call_id)
        if messages is None:
            return None
        call = messages[-1].popleft()
        if not messages[-1]:
            messages.pop()
        if not messages:
            del self._by_id[call_id]
        return call


class Items:
    """The items of messages, with the place that each came from."""

    def __init__(self, messages: Sequence[Message]) -> None:
        """Raises :class:`InvalidValue` for an output without a call, and for a call without an output."""
        self.items: list[Json] = []
        self.places: list[Place] = []
        self._open = _OpenCalls()
        self._sent_ids = {call.id for message in messages for call in _calls(message)}
        self._ids: dict[str, int] = {}
        """How often an id was used so far."""
        for index, message in enumerate(messages):
            self._add_message(f"messages[{index}]", message)
        self._check_outputs()

    def _add_message(self, path: str, message: Message) -> None:
        match message:
            case ChatAssistantMessage():
                self._add_answer(path, message)
            case ChatToolMessage():
                self._add_output(path, message)
            case ChatUserMessage():
                self._check_outputs()
                self._add_input(path, message)
            case ChatInstructions():
                self._add_input(path, message)

    def _check_outputs(self) -> None:
        call = self._open.first()
        if call is not None:
            raise InvalidValue(
                f"There is no message with the role 'tool' for the call of {describe(call.item['name'])} with the id "
                f"'{shorten(call.id)}' (`{call.place}`). Send what the tool returned before the next user message.",
                param=f"{call.place}.id",
            )

    def _add(self, item: Json, place: Place) -> None:
        self.items.append(item)
        self.places.append(place)

    def _add_input(self, path: str, message: ChatInstructions | ChatUserMessage) -> None:
        item = {"type": "message", "role": message.role, "content": _input(message.content)}
        self._add(item, Place(path, _names(message.content, "content")))

    def _add_answer(self, path: str, message: ChatAssistantMessage) -> None:
        name, reasoning = message.thinking
        if reasoning:
            content = [{"type": "reasoning_text", "text": reasoning}]
            self._add({"type": "reasoning", "summary": [], "content": content}, Place(f"{path}.{name}", REASONING))
        answer = _answer(message)
        if answer:
            self._add({"type": "message", "role": "assistant", "content": answer}, Place(path))
        calls = []
        for number, call in enumerate(message.tool_calls):
            item, fields = _call(call)
            item["call_id"] = self._unique(call.id)
            place = f"{path}.tool_calls[{number}]"
            calls.append(_Call(call.id, place, item))
            self._add(item, Place(place, fields))
        self._open.add(calls)

    def _unique(self, call_id: str) -> str:
        """The id, or one that no call has, if an earlier call has this one."""
        number = self._ids[call_id] = self._ids.get(call_id, 0) + 1
        if number == 1:
            return call_id
        while (unique := f"{call_id}_{number}") in self._sent_ids:
            number += 1
        self._ids[call_id] = number
        self._sent_ids.add(unique)
        return unique

    def _add_output(self, path: str, message: ChatToolMessage) -> None:
        call = self._open.take(message.tool_call_id)
        if call is None:
            raise InvalidValue(
                f"There is no call with the id '{shorten(message.tool_call_id)}' before `{path}` that still needs an "
                "output. Send the message of the assistant that made the call, too.",
                param=f"{path}.tool_call_id",
            )
        item = {
            "type": TOOL_PAIRS[call.item["type"]],
            "call_id": call.item["call_id"],
            "output": _input(message.content),
        }
        self._add(item, Place(path, {**OUTPUT, **_names(message.content, "output")}))


def _calls(message: Message) -> Sequence[ReplayedFunctionCall | ReplayedCustomCall]:
    return message.tool_calls if isinstance(message, ChatAssistantMessage) else ()


def _call(call: ReplayedFunctionCall | ReplayedCustomCall) -> tuple[Json, Fields]:
    """The item of a call, without its id, and the names within it."""
    if isinstance(call, ReplayedFunctionCall):
        function = call.function
        return {"type": "function_call", "name": function.name, "arguments": function.arguments or "{}"}, FUNCTION_CALL
    return {"type": "custom_tool_call", "name": call.custom.name, "input": call.custom.input}, CUSTOM_CALL


def _input(content: str | Sequence[ChatText | ChatImage]) -> str | list[Json]:
    return content if isinstance(content, str) else [part.wire() for part in content]


def _names(content: str | Sequence[ChatText | ChatImage], field: str) -> Fields:
    """The names within the parts of an item's ``field`` that differ from those within the message."""
    if isinstance(content, str):
        return {}
    return {
        f"{field}[{number}].{name}": f"content[{number}].{here}"
        for number, part in enumerate(content)
        for name, here in part.fields.items()
    }


def _answer(message: ChatAssistantMessage) -> str | list[Json]:
    """The content of an earlier answer; empty if it has no text."""
    content = message.content or ""
    if isinstance(content, str) and message.refusal is None:
        return content
    parts: Iterable[Json]
    if isinstance(content, str):
        parts = [{"type": "output_text", "text": content}] if content else []
    else:
        parts = [part.wire() for part in content if isinstance(part, ChatAnswerRefusal) or part.text]
    if message.refusal is not None:
        parts = [*parts, {"type": "refusal", "refusal": message.refusal}]
    return list(parts)
