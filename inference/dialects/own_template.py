"""Shows tools, calls and outputs to models whose chat template takes no tools: as text, in Hermes' form."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from inference.calls.thinking import Thinking
from inference.calls.tools import Tool
from inference.dialects.hermes import END, HERMES, START
from inference.prompts.conversation import ChatMessage, Item, PromptMessage, read_turns
from inference.prompts.style import MessageStyle, template_tools

_INTRODUCTION = f"""# Tools

You can call these functions, one JSON object a line:
<tools>
%s
</tools>

To call one, answer with its name and its arguments as JSON, between these tags:
{START}
{{"name": "function name", "arguments": {{"parameter": "value"}}}}
{END}
Its result comes between <tool_response> tags. Call only what you need, and answer in words when you know the answer."""


class _OwnStyle(MessageStyle):
    """Messages of text only: outputs are in the user's messages, and tools in the system message."""

    takes_tools = False

    def messages(
        self, items: Iterable[Item], *, tools: Sequence[Tool], thinking: Thinking | None, show_reasoning: bool
    ) -> list[ChatMessage]:
        messages: list[ChatMessage] = []
        for turn in read_turns(items, show_reasoning=show_reasoning):
            if isinstance(turn, PromptMessage):
                messages.append({"role": turn.role, "content": turn.text})
                continue
            texts = [turn.text] if turn.text else []
            if turn.thought and thinking:
                texts.insert(0, f"{thinking.start}\n{turn.thought}\n{thinking.end}\n")
            texts += [call_text(call.name, call.arguments) for call in turn.calls]
            messages.append({"role": "assistant", "content": "\n".join(texts)})
            outputs = [_output_text(output) for _, output in turn.answered_calls]
            if outputs:
                messages.append({"role": "user", "content": "\n".join(outputs)})
        if tools:
            shown = _tools_text(template_tools(tools))
            if messages and messages[0]["role"] == "system":
                messages[0]["content"] += f"\n\n{shown}"
            else:
                messages.insert(0, {"role": "system", "content": shown})
        return messages


def call_text(name: str, arguments: str) -> str:
    """A call as the model writes it."""
    return f'{START}\n{{"name": {json.dumps(name)}, "arguments": {arguments}}}\n{END}'


def _tools_text(tools: Iterable[Mapping[str, Any]]) -> str:
    return _INTRODUCTION % "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in tools)


def _output_text(output: str) -> str:
    return f"<tool_response>\n{output}\n</tool_response>"


OWN_TEMPLATE = replace(HERMES, style=_OwnStyle())
"""The dialect of a model whose template takes no tools."""
