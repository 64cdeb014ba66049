"""Pythonic calls: `[name(key="value", …), …]`, between `<|tool_call_start|>` and `<|tool_call_end|>` or bare.

Bare calls open only at the start of the message, and only for a declared tool. The list may
contain objects in Hermes' form, too. Source: the model cards and chat templates of LFM2 and of Llama 3.2 and 4.
"""

import json
import re

from inference.calls.call_object import read_call_object
from inference.calls.parser import NotACall, Parser
from inference.calls.source import Malformed, Steps
from inference.calls.tools import Tool
from inference.calls.values import PYTHON, copy_value
from inference.dialects.dialect import Dialect
from inference.grammars.answer import AnswerParts, CallGroups
from inference.grammars.arguments import Values, parameters
from inference.grammars.lark import Grammar, literal

START, END = "<|tool_call_start|>", "<|tool_call_end|>"
_NAME = re.compile(r"[A-Za-z0-9_:.-]+")
_KEY = re.compile(r"[^\s=,()\"'\[\]{}]+")


class PythonicParser(Parser):
    starts = (START,)
    ends = (END,)

    def read_call(self, marker: str) -> Steps[None]:
        yield from self.source.space()
        if not (yield from self.source.ahead("[")):
            raise NotACall
        yield from self._list()
        yield from self.source.space()
        yield from self.source.expect(END)

    def read_bare_call(self) -> Steps[None]:
        yield from self.source.space()
        yield from self._list()

    def _list(self) -> Steps[None]:
        yield from self.source.expect("[")
        while True:
            yield from self.source.space()
            if (yield from self.source.ahead("{")):
                yield from read_call_object(self, only_call_keys=True)
            else:
                yield from self._call()
            yield from self.source.space()
            if (yield from self.source.expect(",", "]")) == "]":
                return

    def _call(self) -> Steps[None]:
        name = yield from self.source.run(_NAME)
        yield from self.source.space()
        yield from self.source.expect("(")
        self.open_call(name)
        names: set[str] = set()
        yield from self.source.space()
        ended = yield from self.source.accept(")")
        while not ended:
            key = yield from self.source.run(_KEY)
            yield from self.source.space()
            yield from self.source.expect("=")
            if not key or key in names:
                raise Malformed
            self.arguments(("{" if not names else ", ") + json.dumps(key, ensure_ascii=False) + ": ")
            names.add(key)
            yield from copy_value(self.source, self.arguments, PYTHON)
            yield from self.source.space()
            ended = yield from self.source.expect(",", ")")
            if ended == ",":
                yield from self.source.space()
                ended = yield from self.source.accept(")")
        self.arguments("}" if names else "{}")
        self.close_call()


def _call(grammar: Grammar, tool: Tool) -> str:
    def parameter(name: str, value: str, is_string: bool) -> str:
        return f'{name} "=" {value}'

    inner = parameters(grammar, tool, parameter, Values(raw_strings=False, between=", "))
    return f"{literal(tool.shown + '(')} {inner} {literal(')')}"


class _Form:
    """Between markers where the tokenizer has them as tokens; else at the start of the message."""

    _marked = CallGroups(start=START, opening='"["', call=_call, next_call=", ", end="]" + END)
    _bare = CallGroups(opening='"["', call=_call, next_call=", ", end="]", bare=r"\[")

    def write(self, grammar: Grammar, parts: AnswerParts) -> None:
        (self._marked if grammar.is_token(START) else self._bare).write(grammar, parts)


PYTHONIC = Dialect(
    name="pythonic",
    template_markers=(START, "<|tool_list_start|>"),
    token_markers=(START,),
    parser=PythonicParser,
    form=_Form(),
)
