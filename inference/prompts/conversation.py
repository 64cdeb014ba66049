"""Items in wire form as the turns of a conversation. Pure.

A turn's reasoning, text and calls become one answer; outputs are assigned to their calls, wherever they were.
Neighbouring system messages become one. Items of other types are not shown.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inference.calls.nesting import loaded
from inference.calls.tools import INPUT, shown_name

Item = Mapping[str, Any]
ChatMessage = dict[str, Any]

_CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")


@dataclass(slots=True)
class PromptMessage:
    """A message of the system or the user."""

    role: str
    text: str


@dataclass(slots=True)
class Call:
    """A call, with its output once there is one."""

    id: str
    number: int
    """How many calls of the conversation came before it."""
    name: str
    arguments: str
    output: str | None = None

    def as_object(self) -> Any:
        """The arguments. Text that is not an object, or nests deeper than templates can walk, is wrapped in one."""
        value = loaded(self.arguments)
        return value if isinstance(value, dict) else {"arguments": self.arguments}


@dataclass(slots=True)
class Answer:
    """An answer of the assistant, with its calls and their outputs."""

    reasoning: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    answered: bool = False

    @property
    def text(self) -> str:
        return "\n\n".join(self.texts)

    @property
    def thought(self) -> str:
        return "\n\n".join(self.reasoning)

    @property
    def answered_calls(self) -> list[tuple[Call, str]]:
        """The calls that have an output, each with it."""
        return [(call, call.output) for call in self.calls if call.output is not None]

    def one_call_each(self) -> list["Answer"]:
        """The same as several answers: the text, and each call alone."""
        message = [Answer(self.reasoning, self.texts)] if self.texts or self.reasoning or not self.calls else []
        return message + [Answer(calls=[call]) for call in self.calls]


def read_turns(items: Iterable[Item], *, show_reasoning: bool) -> list[PromptMessage | Answer]:
    """The turns, oldest first."""
    turns: list[PromptMessage | Answer] = []
    calls: dict[str, Call] = {}
    number = 0
    for item in items:
        kind = item["type"]
        if kind == "message" and item["role"] != "assistant":
            role = "user" if item["role"] == "user" else "system"
            last = turns[-1] if turns else None
            if role == "system" and isinstance(last, PromptMessage) and last.role == role:
                last.text += f"\n\n{content_text(item['content'])}"
            else:
                turns.append(PromptMessage(role, content_text(item["content"])))
        elif kind == "message":
            _answer(turns, before="calls").texts.append(content_text(item["content"]))
        elif kind == "reasoning":
            if show_reasoning and (thought := content_text(item.get("content") or ())):
                _answer(turns, before="texts").reasoning.append(thought)
        elif kind in _CALLS:
            call = Call(item["call_id"], number, shown_name(item["name"], item.get("namespace")), _arguments(item))
            number += 1
            calls[call.id] = call
            _answer(turns, before="answered").calls.append(call)
        elif kind in _OUTPUTS and item["call_id"] in calls:
            calls[item["call_id"]].output = content_text(item["output"])
            if isinstance(turns[-1], Answer):
                turns[-1].answered = True
    return turns


def _answer(turns: list[PromptMessage | Answer], *, before: str) -> Answer:
    """The current answer, or a new one if the current one has parts that may not come before the new part."""
    last = turns[-1] if turns else None
    closing = {"calls": ("calls",), "texts": ("texts", "calls"), "answered": ("answered",)}[before]
    if not isinstance(last, Answer) or any(getattr(last, name) for name in closing):
        last = Answer()
        turns.append(last)
    return last


def content_text(content: str | Sequence[Item]) -> str:
    """The text of a content; its parts are joined without a separator."""
    if isinstance(content, str):
        return content
    return "".join(part["refusal"] if part["type"] == "refusal" else part["text"] for part in content)


def _arguments(item: Item) -> str:
    if item["type"] == "custom_tool_call":
        return json.dumps({INPUT: item["input"]}, ensure_ascii=False)
    return str(item["arguments"]) or "{}"
