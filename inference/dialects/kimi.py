"""Kimi K2: a section of calls, each with an id that contains the tool's name, and a JSON object.

`<|tool_calls_section_begin|><|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>…
<|tool_calls_section_end|>`. Source: Moonshot's tool calling guide for Kimi K2.
"""

from inference.calls.call_object import read_arguments
from inference.calls.parser import NotACall, Parser
from inference.calls.source import Malformed, Markers, Steps
from inference.calls.tools import Tool
from inference.dialects.dialect import Dialect
from inference.grammars.answer import CallGroups
from inference.grammars.arguments import json_arguments
from inference.grammars.lark import Grammar
from inference.prompts.conversation import Call
from inference.prompts.style import MessageStyle

SECTION, SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
START, ARGUMENTS, END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
_AFTER_ID = Markers((ARGUMENTS, END, SECTION_END))


class KimiParser(Parser):
    starts = (SECTION, START)
    ends = (END, SECTION_END)
    inner = (ARGUMENTS,)

    def read_call(self, marker: str) -> Steps[None]:
        if marker == SECTION:
            yield from self.source.space()
            if not (yield from self.source.accept(START)):
                raise NotACall
        identity = yield from self.source.text_until(_AFTER_ID)
        yield from self.source.expect(ARGUMENTS)
        self.open_call(_name_of(identity.strip()))
        yield from self.source.space()
        yield from read_arguments(self)
        self.close_call()
        yield from self.source.space()
        yield from self.source.expect(END)


def _name_of(identity: str) -> str:
    """The tool's name in a call's id, `functions.name:0`."""
    name, _, number = identity.removeprefix("functions.").rpartition(":")
    if not name or not number.isdecimal():
        raise Malformed
    return name


def _call(grammar: Grammar, tool: Tool) -> str:
    start, arguments = grammar.markup(f"{START}functions.{tool.shown}:"), grammar.markup(ARGUMENTS)
    return f"{start} /[0-9]{{1,4}}/ {arguments} {grammar.rule(json_arguments(tool))} {grammar.markup(END)}"


class _Style(MessageStyle):
    """Ids name the tool and count the calls of the conversation."""

    def call_id(self, call: Call) -> str:
        return f"functions.{call.name}:{call.number}"


KIMI = Dialect(
    name="kimi",
    template_markers=(SECTION,),
    token_markers=(SECTION,),
    parser=KimiParser,
    form=CallGroups(start=SECTION, call=_call, next_call="", end=SECTION_END, never=(START,)),
    style=_Style(),
)
