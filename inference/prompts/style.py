"""How a chat template reads a conversation with calls, and the tools. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from inference.calls.thinking import Thinking
from inference.calls.tools import INPUT, Tool
from inference.prompts.conversation import Answer, Call, ChatMessage, Item, PromptMessage, read_turns

ReasoningKey = Literal["reasoning_content", "thinking", ""]


@dataclass(frozen=True, kw_only=True)
class MessageStyle:
    """The usual style, that of OpenAI's Chat Completions. A dialect overrides methods where its templates differ.

    The outputs of an answer's calls follow it in the order of the calls.
    """

    takes_tools: ClassVar[bool] = True
    """The template writes the tools itself; else they are in the messages."""

    arguments_as_text: bool = False
    """The template writes the arguments of a call as they are given; else it takes an object."""
    one_call_per_message: bool = False
    """The template refuses a message with several calls."""
    reasoning_key: ReasoningKey = ""
    """The key of a message's reasoning; "" for templates without one: there it is a part of the text."""

    def messages(
        self, items: Iterable[Item], *, tools: Sequence[Tool], thinking: Thinking | None, show_reasoning: bool
    ) -> list[ChatMessage]:
        """The messages for the template, oldest first."""
        messages: list[ChatMessage] = []
        for turn in read_turns(items, show_reasoning=show_reasoning):
            if isinstance(turn, PromptMessage):
                messages.append({"role": turn.role, "content": turn.text})
            else:
                messages += self.answer_messages(turn, thinking)
        return messages

    def answer_messages(self, answer: Answer, thinking: Thinking | None) -> list[ChatMessage]:
        """The messages of one answer and of the outputs of its calls."""
        messages: list[ChatMessage] = []
        for part in answer.one_call_each() if self.one_call_per_message else [answer]:
            message = self.assistant_message(part, thinking)
            messages += [message, *self.output_messages(message, part)]
        return messages

    def assistant_message(self, answer: Answer, thinking: Thinking | None) -> ChatMessage:
        """The answer itself."""
        message: ChatMessage = {"role": "assistant", "content": answer.text}
        if answer.thought and self.reasoning_key:
            message[self.reasoning_key] = answer.thought
        elif answer.thought and thinking:
            message["content"] = f"{thinking.start}\n{answer.thought}\n{thinking.end}\n\n{answer.text}"
        if answer.calls:
            message["tool_calls"] = [self.tool_call(call) for call in answer.calls]
        return message

    def tool_call(self, call: Call) -> dict[str, Any]:
        """One call of an assistant message."""
        arguments = call.arguments if self.arguments_as_text else call.as_object()
        return {
            "id": self.call_id(call),
            "type": "function",
            "function": {"name": call.name, "arguments": arguments},
        }

    def call_id(self, call: Call) -> str:
        """The id as the template needs it; the same call has the same id in every rendering."""
        return call.id

    def output_messages(self, message: ChatMessage, answer: Answer) -> list[ChatMessage]:
        """The outputs of an answer's calls, as messages after it. The answer's own message may be changed for them."""
        return [
            {
                "role": "tool",
                "tool_call_id": self.call_id(call),
                "name": call.name,
                "content": self.output_content(call, output),
            }
            for call, output in answer.answered_calls
        ]

    def output_content(self, call: Call, output: str) -> Any:
        """The content of an output's message."""
        return output


def template_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """The tools as templates read them; a custom tool is a function with one string."""
    return [
        {
            "type": "function",
            "function": {"name": tool.shown, "description": _description(tool), "parameters": dict(tool.schema)},
        }
        for tool in tools
    ]


def _description(tool: Tool) -> str:
    if not tool.custom:
        return tool.description
    form = "free text"
    if tool.format is not None:
        name = {"lark": "Lark grammar", "regex": "regular expression"}[tool.format.syntax]
        form = f"text that matches this {name}:\n{tool.format.definition}"
    return f"{tool.description}\n\n`{INPUT}` is {form}".strip()
