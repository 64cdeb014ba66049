"""Hermes and Qwen: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, one block per call.

Source: the chat templates of NousResearch's Hermes 2 Pro and of Qwen 2.5 and 3.
"""

from inference.calls.call_object import read_call_object
from inference.calls.parser import NotACall, Parser
from inference.calls.source import Steps
from inference.calls.tools import Tool
from inference.dialects.dialect import Dialect
from inference.grammars.answer import CallGroups, named_object
from inference.grammars.lark import Grammar, literal

START, END = "<tool_call>", "</tool_call>"
_LINE = "\n"


class HermesParser(Parser):
    starts = (START,)
    ends = (END,)

    def read_call(self, marker: str) -> Steps[None]:
        yield from self.source.space()
        if not (yield from self.source.ahead("{")):
            raise NotACall
        yield from read_call_object(self)
        yield from self.source.space()
        yield from self.source.expect(END)


_named_object = named_object("arguments")


def _call(grammar: Grammar, tool: Tool) -> str:
    return f"{literal(_LINE)} {_named_object(grammar, tool)} {grammar.markup(_LINE + END)}"


HERMES = Dialect(
    name="hermes",
    template_markers=(START,),
    parser=HermesParser,
    form=CallGroups(start=START, call=_call, next_group=_LINE),
)
