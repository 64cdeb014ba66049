"""DeepSeek: a group of calls, each a name and a JSON object; since V3.2 a tag for each parameter.

V3.1: `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>name<｜tool▁sep｜>{…}<｜tool▁call▁end｜>…<｜tool▁calls▁end｜>`.
V3 and R1: `…<｜tool▁call▁begin｜>function<｜tool▁sep｜>name\\n```json\\n{…}\\n```<｜tool▁call▁end｜>…`.
Source: their chat templates.

V3.2: `<｜DSML｜function_calls>\\n<｜DSML｜invoke name="…">\\n
<｜DSML｜parameter name="…" string="true">…</｜DSML｜parameter>\\n
</｜DSML｜invoke>\\n</｜DSML｜function_calls>`; a parameter says itself whether it is a string. Source: the encoding
that DeepSeek published with V3.2.
"""
# ruff: noqa: RUF001, RUF002 - the markers are spelt with full-width bars

import re

from inference.calls.call_object import read_arguments
from inference.calls.parser import NotACall, Parser
from inference.calls.source import Malformed, Markers, Steps
from inference.calls.thinking import Thinking
from inference.calls.tools import Tool
from inference.calls.typed_object import TypedObject
from inference.dialects.dialect import Dialect
from inference.grammars.answer import CallGroups
from inference.grammars.arguments import Values, json_arguments, parameters
from inference.grammars.lark import Grammar, literal
from inference.prompts.conversation import Answer, ChatMessage
from inference.prompts.style import MessageStyle

GROUP, GROUP_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
START, SEPARATOR, END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
FENCE, FENCE_END = "```json", "```"
_LINE = "\n"
_AFTER_NAME = Markers((SEPARATOR, END, GROUP_END))
_BEFORE_OBJECT = Markers((FENCE, "{", END, GROUP_END))

DSML = "｜DSML｜"
BLOCK, BLOCK_END = f"<{DSML}function_calls>", f"</{DSML}function_calls>"
INVOKE, INVOKE_END = f"<{DSML}invoke", f"</{DSML}invoke>"
PARAMETER, PARAMETER_END = f"<{DSML}parameter", f"</{DSML}parameter>"
_VALUE_ENDS = Markers((PARAMETER_END, INVOKE_END, BLOCK_END))
_TAG_ENDS = Markers((">", "<"))
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


class DeepSeekParser(Parser):
    starts = (GROUP, START)
    ends = (END, GROUP_END)
    inner = (SEPARATOR,)

    def read_call(self, marker: str) -> Steps[None]:
        if marker == GROUP:
            yield from self.source.space()
            if not (yield from self.source.accept(START)):
                raise NotACall
        name = (yield from self.source.text_until(_AFTER_NAME)).strip()
        yield from self.source.expect(SEPARATOR)
        inner = (yield from self.source.text_until(_BEFORE_OBJECT)).strip()
        fenced = yield from self.source.accept(FENCE)
        yield from self.source.space()
        yield from self.source.ahead("{")
        self.open_call(inner or name)
        yield from read_arguments(self)
        self.close_call()
        yield from self.source.space()
        if fenced:
            yield from self.source.accept(FENCE_END)
            yield from self.source.space()
        yield from self.source.expect(END)


def _call(grammar: Grammar, tool: Tool) -> str:
    arguments = grammar.rule(json_arguments(tool))
    start, separator, end = map(grammar.markup, (START, SEPARATOR, END))
    fence = literal(f"{tool.shown}\n{FENCE}\n")
    fenced = f'"function" {separator} {fence} {arguments} {literal(_LINE + FENCE_END)}'
    return f"{start} ({literal(tool.shown)} {separator} {arguments} | {fenced}) {end} {literal(_LINE)}?"


class _Style(MessageStyle):
    """A message with calls has no text rather than an empty one, which would end it a second time."""

    def assistant_message(self, answer: Answer, thinking: Thinking | None) -> ChatMessage:
        message = super().assistant_message(answer, thinking)
        return message | {"content": message["content"] or None} if answer.calls else message


DEEPSEEK = Dialect(
    name="deepseek",
    template_markers=(GROUP,),
    parser=DeepSeekParser,
    form=CallGroups(start=GROUP, call=_call, next_call="", end=GROUP_END, never=(START,)),
    style=_Style(arguments_as_text=True),
)


class DsmlParser(Parser):
    starts = (BLOCK, INVOKE)
    ends = (INVOKE_END, BLOCK_END)
    inner = (DSML,)

    def read_call(self, marker: str) -> Steps[None]:
        if marker == BLOCK:
            yield from self.source.space()
            if not (yield from self.source.accept(INVOKE)):
                raise NotACall
        tool = self.open_call((yield from self._attributes())["name"])
        arguments = TypedObject(self, tool, line_breaks=False, untyped_as_string=True)
        while True:
            yield from self.source.space()
            if (yield from self.source.expect(PARAMETER, INVOKE_END)) == INVOKE_END:
                break
            tag = yield from self._attributes()
            yield from arguments.read_value(tag["name"], _VALUE_ENDS, as_string=tag.get("string") != "false")
            yield from self.source.accept(PARAMETER_END)
        arguments.close()
        self.close_call()

    def _attributes(self) -> Steps[dict[str, str]]:
        attributes = dict(_ATTRIBUTE.findall((yield from self.source.text_until(_TAG_ENDS))))
        if not attributes.get("name") or not (yield from self.source.accept(">")):
            raise Malformed
        return attributes


def _dsml_call(grammar: Grammar, tool: Tool) -> str:
    def parameter(name: str, value: str, is_string: bool) -> str:
        tag, kind = f'{PARAMETER} name="', f'" string="{"true" if is_string else "false"}">'
        return f"{grammar.markup(tag)} {name} {literal(kind)} {value} {literal(_LINE)}"

    values = Values(string_end=PARAMETER_END, other_end=PARAMETER_END, never=(INVOKE_END, BLOCK_END))
    inner = parameters(grammar, tool, parameter, values)
    start = f'\n{INVOKE} name="{tool.shown}">\n'
    return f"{grammar.markup(start)} {inner} {literal(_LINE)}? {grammar.markup(INVOKE_END)}"


DEEPSEEK_DSML = Dialect(
    name="deepseek-dsml",
    template_markers=(DSML,),
    parser=DsmlParser,
    form=CallGroups(start=BLOCK, call=_dsml_call, next_call="", end=_LINE + BLOCK_END, never=(INVOKE,)),
    style=MessageStyle(arguments_as_text=True),
)
