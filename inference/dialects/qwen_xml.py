"""Qwen3-Coder: tags for the function and for each parameter, the values as plain text.

`<tool_call>\\n<function=name>\\n<parameter=key>\\nvalue\\n</parameter>\\n</function>\\n</tool_call>`; models
leave out the outer tag at times, so `<function=` opens a call too. Source: the chat template of Qwen3-Coder.
"""

from inference.calls.parser import NotACall, Parser
from inference.calls.source import Malformed, Markers, Steps
from inference.calls.tools import Tool
from inference.calls.typed_object import TypedObject
from inference.dialects.dialect import Dialect
from inference.grammars.answer import CallGroups
from inference.grammars.arguments import Values, parameters
from inference.grammars.lark import Grammar, literal

START, END = "<tool_call>", "</tool_call>"
FUNCTION, FUNCTION_END = "<function=", "</function>"
PARAMETER, PARAMETER_END = "<parameter=", "</parameter>"
_LINE = "\n"
_VALUE_ENDS = Markers((PARAMETER_END, FUNCTION_END, END))
_TAG_ENDS = Markers((">", "<", "\n"))


class QwenXmlParser(Parser):
    starts = (START, FUNCTION)
    ends = (FUNCTION_END, END)

    def read_call(self, marker: str) -> Steps[None]:
        if marker == START:
            yield from self.source.space()
            if not (yield from self.source.accept(FUNCTION)):
                raise NotACall
        tool = self.open_call((yield from self._tag()))
        arguments = TypedObject(self, tool, line_breaks=True, untyped_as_string=True)
        while True:
            yield from self.source.space()
            if (yield from self.source.expect(PARAMETER, FUNCTION_END)) == FUNCTION_END:
                break
            yield from arguments.read_value((yield from self._tag()), _VALUE_ENDS)
            yield from self.source.accept(PARAMETER_END)
        arguments.close()
        self.close_call()
        if marker == START:
            yield from self.source.space()
            yield from self.source.accept(END)

    def _tag(self) -> Steps[str]:
        name = yield from self.source.text_until(_TAG_ENDS)
        if not name.strip() or not (yield from self.source.accept(">")):
            raise Malformed
        return name.strip().strip("\"'")


def _call(grammar: Grammar, tool: Tool) -> str:
    def parameter(name: str, value: str, is_string: bool) -> str:
        return f"{literal(PARAMETER)} {name} {literal('>' + _LINE)} {value}"

    end = f"\n{PARAMETER_END}\n"
    values = Values(string_end=end, other_end=end, never=(PARAMETER_END, FUNCTION_END, END))
    start = f"\n{FUNCTION}{tool.shown}>\n"
    inner = parameters(grammar, tool, parameter, values)
    return f"{literal(start)} {inner} {grammar.markup(FUNCTION_END + _LINE + END)}"


QWEN_XML = Dialect(
    name="qwen-xml",
    template_markers=(FUNCTION,),
    parser=QwenXmlParser,
    form=CallGroups(start=START, call=_call, next_group=_LINE, never=(FUNCTION,)),
)
