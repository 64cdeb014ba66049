"""GLM 4.5 and later: `<tool_call>name` and then pairs of `<arg_key>` and `<arg_value>`, the values as plain text.

Source: the chat templates of GLM 4.5, 4.6 and 4.7 (which leaves out the line breaks).
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
KEY, KEY_END = "<arg_key>", "</arg_key>"
VALUE, VALUE_END = "<arg_value>", "</arg_value>"
_LINE = "\n"
_NAME_ENDS = Markers((KEY, END, "\n"))
_KEY_ENDS = Markers((KEY_END, END))
_VALUE_ENDS = Markers((VALUE_END, END))


class GlmParser(Parser):
    starts = (START,)
    ends = (END,)
    inner = (KEY, KEY_END, VALUE, VALUE_END)

    def read_call(self, marker: str) -> Steps[None]:
        yield from self.source.space()
        name = (yield from self.source.text_until(_NAME_ENDS)).strip()
        yield from self.source.space()
        if not name or not (yield from self.source.ahead(KEY, END)):
            raise NotACall
        arguments = TypedObject(self, self.open_call(name), line_breaks=False, untyped_as_string=False)
        while (yield from self.source.expect(KEY, END)) == KEY:
            key = (yield from self.source.text_until(_KEY_ENDS)).strip()
            yield from self.source.expect(KEY_END)
            yield from self.source.space()
            yield from self.source.expect(VALUE)
            if not key:
                raise Malformed
            yield from arguments.read_value(key, _VALUE_ENDS)
            yield from self.source.accept(VALUE_END)
            yield from self.source.space()
        arguments.close()
        self.close_call()


def _call(grammar: Grammar, tool: Tool) -> str:
    def parameter(name: str, value: str, is_string: bool) -> str:
        between = grammar.markup(KEY_END + _LINE + VALUE)
        return f"{grammar.markup(KEY)} {name} {between} {value} {literal(_LINE)}"

    values = Values(string_end=VALUE_END, other_end=VALUE_END, never=(END,))
    inner = parameters(grammar, tool, parameter, values)
    return f"{literal(tool.shown + _LINE)} {inner} {grammar.markup(END)}"


GLM = Dialect(
    name="glm",
    template_markers=(KEY,),
    parser=GlmParser,
    form=CallGroups(start=START, call=_call, next_group=_LINE),
)
