"""Gemma: `call:name{key:value,…}` between markers, keys without quotes, strings between markers of their own.

FunctionGemma: `<start_function_call>call:name{key:<escape>text<escape>}<end_function_call>`. Gemma 4:
`<|tool_call>call:name{key:<|"|>text<|"|>}<tool_call|>`. Source: their chat templates.
"""

import re
from typing import Any, ClassVar

from inference.calls.parser import NotACall, Parser
from inference.calls.source import Malformed, Steps
from inference.calls.tools import Tool
from inference.calls.values import Notation, copy_value, json_string, raw_string
from inference.dialects.dialect import Dialect
from inference.grammars.answer import CallGroups
from inference.grammars.arguments import Values, parameters
from inference.grammars.lark import Grammar, literal
from inference.prompts.conversation import Answer, Call, ChatMessage
from inference.prompts.style import MessageStyle

CALL = "call:"
FUNCTION_START, FUNCTION_END, ESCAPE = "<start_function_call>", "<end_function_call>", "<escape>"
START, END, QUOTE = "<|tool_call>", "<tool_call|>", '<|"|>'
_NAME = re.compile(r"[A-Za-z0-9_:.-]+")


class _GemmaParser(Parser):
    notation: ClassVar[Notation]

    def read_call(self, marker: str) -> Steps[None]:
        yield from self.source.space()
        if not (yield from self.source.accept(CALL)):
            raise NotACall
        name = yield from self.source.run(_NAME)
        if not (yield from self.source.ahead("{")):
            raise Malformed
        self.open_call(name)
        yield from copy_value(self.source, self.arguments, self.notation)
        self.close_call()
        yield from self.source.space()
        yield from self.source.expect(*self.ends)


class FunctionGemmaParser(_GemmaParser):
    starts = (FUNCTION_START,)
    ends = (FUNCTION_END,)
    inner = (ESCAPE,)
    notation = Notation(quotes={ESCAPE: raw_string(ESCAPE), '"': json_string}, bare=True)


class GemmaParser(_GemmaParser):
    starts = (START,)
    ends = (END,)
    inner = (QUOTE,)
    notation = Notation(quotes={QUOTE: raw_string(QUOTE), '"': json_string}, bare=True)


def _calls(start: str, end: str, quote: str) -> CallGroups:
    def call(grammar: Grammar, tool: Tool) -> str:
        def parameter(name: str, value: str, is_string: bool) -> str:
            return f'{name} ":" {grammar.markup(quote) if is_string else ""} {value}'

        inner = parameters(grammar, tool, parameter, Values(string_end=quote, between=","))
        return f"{literal(CALL + tool.shown + '{')} {inner} {literal('}')} {grammar.markup(end)}"

    return CallGroups(start=start, call=call)


class _FunctionGemmaStyle(MessageStyle):
    """The content of an output is an object that names the tool."""

    def output_content(self, call: Call, output: str) -> Any:
        return {"name": call.name, "response": {"result": output}}


class _GemmaStyle(MessageStyle):
    """Outputs are a part of the message with the calls."""

    def output_messages(self, message: ChatMessage, answer: Answer) -> list[ChatMessage]:
        if answer.calls:
            message["tool_responses"] = [
                {"name": call.name, "response": output} for call, output in answer.answered_calls
            ]
        return []


FUNCTION_GEMMA = Dialect(
    name="function-gemma",
    template_markers=(FUNCTION_START,),
    parser=FunctionGemmaParser,
    form=_calls(FUNCTION_START, FUNCTION_END, ESCAPE),
    style=_FunctionGemmaStyle(),
)
GEMMA = Dialect(
    name="gemma",
    template_markers=(START,),
    parser=GemmaParser,
    form=_calls(START, END, QUOTE),
    style=_GemmaStyle(),
)
