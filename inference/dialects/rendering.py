"""From items in wire form and declared tools to the messages and tools that a model's chat template reads. Pure.

A turn's reasoning, text and calls become one assistant message; outputs follow the calls they belong to, in the order
of the calls, wherever they stood. Neighbouring system messages become one. Items of other types are not shown.
"""

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inference.calls.nesting import loaded
from inference.calls.tools import INPUT, Tool, shown_name
from inference.dialects.detection import Dialect
from inference.dialects.own_template import call_text, output_text, tools_text

Item = Mapping[str, Any]
ChatMessage = dict[str, Any]

_CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_MISTRAL_ID_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MISTRAL_ID_LENGTH = 9


def template_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """The tools as templates read them; a custom tool is a function with one string."""
    return [
        {
            "type": "function",
            "function": {"name": tool.shown, "description": _description(tool), "parameters": dict(tool.schema)},
        }
        for tool in tools
    ]


def template_messages(
    items: Iterable[Item], dialect: Dialect, *, tools: Sequence[Tool] = (), show_reasoning: bool = False
) -> list[ChatMessage]:
    """The messages for a template. With a template of ours the tools are in them; else pass `template_tools` along."""
    turns = _turns(items, show_reasoning=show_reasoning)
    if dialect.own_template:
        return _own_messages(turns, tools, dialect)
    messages: list[ChatMessage] = []
    numbers = itertools.count()
    for turn in turns:
        if isinstance(turn, _Said):
            messages.append({"role": turn.role, "content": turn.text})
        elif dialect.name == "harmony":
            messages += _harmony_messages(turn)
        else:
            for part in _parted(turn) if dialect.one_call_a_message else [turn]:
                ids = [_call_id(call, dialect, next(numbers)) for call in part.calls]
                messages += _assistant_messages(part, dialect, ids)
    return messages


@dataclass(slots=True)
class _Said:
    """What the system or the user says."""

    role: str
    text: str


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    arguments: str
    output: str | None = None

    def as_object(self) -> Any:
        """The arguments; what is no object, for it was cut, or nested deeper than templates can walk, as text."""
        value = loaded(self.arguments)
        return value if isinstance(value, dict) else {"arguments": self.arguments}


@dataclass(slots=True)
class _Answer:
    """What the assistant says, up to the outputs of its calls."""

    reasoning: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    answered: bool = False

    @property
    def text(self) -> str:
        return "\n\n".join(self.texts)

    @property
    def thought(self) -> str:
        return "\n\n".join(self.reasoning)


def _turns(items: Iterable[Item], *, show_reasoning: bool) -> list[_Said | _Answer]:
    turns: list[_Said | _Answer] = []
    calls: dict[str, _Call] = {}
    for item in items:
        kind = item["type"]
        if kind == "message" and item["role"] != "assistant":
            role = "user" if item["role"] == "user" else "system"
            last = turns[-1] if turns else None
            if role == "system" and isinstance(last, _Said) and last.role == role:
                last.text += f"\n\n{content_text(item['content'])}"
            else:
                turns.append(_Said(role, content_text(item["content"])))
        elif kind == "message":
            _answer(turns, before="calls").texts.append(content_text(item["content"]))
        elif kind == "reasoning":
            if show_reasoning and (thought := content_text(item.get("content") or ())):
                _answer(turns, before="texts").reasoning.append(thought)
        elif kind in _CALLS:
            call = _Call(item["call_id"], shown_name(item["name"], item.get("namespace")), _arguments(item))
            calls[call.id] = call
            _answer(turns, before="answered").calls.append(call)
        elif kind in _OUTPUTS and item["call_id"] in calls:
            calls[item["call_id"]].output = content_text(item["output"])
            if isinstance(turns[-1], _Answer):
                turns[-1].answered = True
    return turns


def _answer(turns: list[_Said | _Answer], *, before: str) -> _Answer:
    """The open answer, or a new one when the last has what may not come before."""
    last = turns[-1] if turns else None
    closing = {"calls": ("calls",), "texts": ("texts", "calls"), "answered": ("answered",)}[before]
    if not isinstance(last, _Answer) or any(getattr(last, name) for name in closing):
        last = _Answer()
        turns.append(last)
    return last


def _parted(answer: _Answer) -> list[_Answer]:
    """The same with each call alone, after the text."""
    said = [_Answer(answer.reasoning, answer.texts)] if answer.texts or answer.reasoning or not answer.calls else []
    return said + [_Answer(calls=[call]) for call in answer.calls]


def content_text(content: str | Sequence[Item]) -> str:
    """A content's text; its parts are joined without a separator."""
    if isinstance(content, str):
        return content
    return "".join(part["refusal"] if part["type"] == "refusal" else part["text"] for part in content)


def _arguments(item: Item) -> str:
    if item["type"] == "custom_tool_call":
        return json.dumps({INPUT: item["input"]}, ensure_ascii=False)
    return str(item["arguments"]) or "{}"


def _call_id(call: _Call, dialect: Dialect, number: int) -> str:
    """The id as the template needs it; the same call has the same in every rendering."""
    if dialect.name == "mistral":
        digest = int.from_bytes(hashlib.sha256(call.id.encode(errors="replace")).digest())
        letters = []
        for _ in range(_MISTRAL_ID_LENGTH):
            digest, letter = divmod(digest, len(_MISTRAL_ID_LETTERS))
            letters.append(_MISTRAL_ID_LETTERS[letter])
        return "".join(letters)
    return f"functions.{call.name}:{number}" if dialect.name == "kimi" else call.id


def _assistant_messages(answer: _Answer, dialect: Dialect, ids: Sequence[str]) -> list[ChatMessage]:
    message: ChatMessage = {"role": "assistant", "content": answer.text}
    if answer.thought and dialect.reasoning_key:
        message[dialect.reasoning_key] = answer.thought
    elif answer.thought and dialect.thinking:
        start, end = dialect.thinking.start, dialect.thinking.end
        message["content"] = f"{start}\n{answer.thought}\n{end}\n\n{answer.text}"
    if not answer.calls:
        return [message]
    if dialect.name == "deepseek" and not message["content"]:
        message["content"] = None  # an empty text would end the message a second time
    message["tool_calls"] = [
        {
            "id": id,
            "type": "function",
            "function": {
                "name": call.name,
                "arguments": call.arguments if dialect.arguments_as_text else call.as_object(),
            },
        }
        for id, call in zip(ids, answer.calls, strict=True)
    ]
    answered = [(id, call, call.output) for id, call in zip(ids, answer.calls, strict=True) if call.output is not None]
    if dialect.name == "gemma":
        message["tool_responses"] = [{"name": call.name, "response": output} for _, call, output in answered]
        return [message]
    return [message, *(_output_message(id, call, output, dialect) for id, call, output in answered)]


def _output_message(id: str, call: _Call, output: str, dialect: Dialect) -> ChatMessage:
    content: Any = output
    if dialect.name == "function-gemma":
        content = {"name": call.name, "response": {"result": output}}
    return {"role": "tool", "tool_call_id": id, "name": call.name, "content": content}


def _harmony_messages(answer: _Answer) -> list[ChatMessage]:
    """One call a message, its output right after it: the template names an output by the call before."""
    messages: list[ChatMessage] = []
    thought = {"thinking": answer.thought} if answer.thought else {}
    if not answer.calls:
        return [{"role": "assistant", "content": answer.text, **thought}]
    for call in answer.calls:
        before = "\n\n".join(filter(None, (answer.thought, answer.text))) if not messages else ""
        function = {"name": call.name, "arguments": call.as_object()}
        tool_calls = [{"id": call.id, "type": "function", "function": function}]
        message: ChatMessage = {"role": "assistant", "content": "", "tool_calls": tool_calls}
        messages.append(message | ({"thinking": before} if before else {}))  # it takes one of text and thinking
        if call.output is not None:
            output = {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": call.output}
            messages.append(output)
    return messages


def _own_messages(turns: list[_Said | _Answer], tools: Sequence[Tool], dialect: Dialect) -> list[ChatMessage]:
    messages: list[ChatMessage] = []
    for turn in turns:
        if isinstance(turn, _Said):
            messages.append({"role": turn.role, "content": turn.text})
            continue
        texts = [turn.text] if turn.text else []
        if turn.thought and dialect.thinking:
            texts.insert(0, f"{dialect.thinking.start}\n{turn.thought}\n{dialect.thinking.end}\n")
        texts += [call_text(call.name, call.arguments) for call in turn.calls]
        messages.append({"role": "assistant", "content": "\n".join(texts)})
        outputs = [output_text(call.output) for call in turn.calls if call.output is not None]
        if outputs:
            messages.append({"role": "user", "content": "\n".join(outputs)})
    if tools:
        told = tools_text(template_tools(tools))
        if messages and messages[0]["role"] == "system":
            messages[0]["content"] += f"\n\n{told}"
        else:
            messages.insert(0, {"role": "system", "content": told})
    return messages


def _description(tool: Tool) -> str:
    if not tool.custom:
        return tool.description
    form = "free text"
    if tool.format is not None:
        name = {"lark": "Lark grammar", "regex": "regular expression"}[tool.format.syntax]
        form = f"text that matches this {name}:\n{tool.format.definition}"
    return f"{tool.description}\n\n`{INPUT}` is {form}".strip()
