"""Mistral: `[TOOL_CALLS]` before a JSON list of calls, or before each `name[ARGS]{…}`.

The list is what models up to tokenizer version 7 write, `[{"name": …, "arguments": {…}, "id": …}]`; later ones write a
name, maybe `[CALL_ID]` and an id, `[ARGS]` (some leave it out) and an object. A call has no end marker: it ends with
its object. Source: the chat templates of Mistral Small 3, Ministral 3, Devstral and Magistral.
"""

import hashlib
import re

from inference.calls.call_object import read_arguments, read_call_object
from inference.calls.parser import NotACall, Parser
from inference.calls.source import Steps
from inference.calls.tools import Tool
from inference.dialects.dialect import Dialect
from inference.grammars.answer import AnswerParts, CallGroups, named_object
from inference.grammars.arguments import json_arguments
from inference.grammars.lark import Grammar, literal
from inference.prompts.conversation import Call
from inference.prompts.style import MessageStyle

START, ID, ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
_NAME = re.compile(r"[A-Za-z0-9_:.-]+")
_ID_CHARACTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ID_LENGTH = 9


class MistralParser(Parser):
    starts = (START,)
    inner = (ID, ARGUMENTS)

    def read_call(self, marker: str) -> Steps[None]:
        yield from self.source.space()
        if (yield from self.source.accept("[")):
            yield from self._list()
        else:
            yield from self._named()

    def _list(self) -> Steps[None]:
        yield from self.source.space()
        if (yield from self.source.accept("]")):
            return
        while True:
            yield from read_call_object(self)
            yield from self.source.space()
            if (yield from self.source.expect(",", "]")) == "]":
                return
            yield from self.source.space()

    def _named(self) -> Steps[None]:
        name = yield from self.source.run(_NAME)
        yield from self.source.space()
        if (yield from self.source.accept(ID)):
            yield from self.source.run(_NAME)
            yield from self.source.space()
        yield from self.source.accept(ARGUMENTS)
        yield from self.source.space()
        yield from self.source.peek()
        if not name or not (yield from self.source.ahead("{")):
            raise NotACall
        self.open_call(name)
        yield from read_arguments(self)
        self.close_call()


def _call(grammar: Grammar, tool: Tool) -> str:
    return f"{literal(tool.shown)} {grammar.markup(ARGUMENTS)} {grammar.rule(json_arguments(tool))}"


class _Form:
    """A list of calls where the tokenizer has no token for the arguments; else each call behind a marker."""

    _named = CallGroups(start=START, call=_call)
    _listed = CallGroups(start=START, call=named_object("arguments"), opening=r"/ ?\[/", next_call=", ", end="]")

    def write(self, grammar: Grammar, parts: AnswerParts) -> None:
        is_listed = grammar.is_token(START) and not grammar.is_token(ARGUMENTS)
        (self._listed if is_listed else self._named).write(grammar, parts)


class _Style(MessageStyle):
    """Ids have nine letters and digits."""

    def call_id(self, call: Call) -> str:
        digest = int.from_bytes(hashlib.sha256(call.id.encode(errors="replace")).digest())
        characters = []
        for _ in range(_ID_LENGTH):
            digest, character = divmod(digest, len(_ID_CHARACTERS))
            characters.append(_ID_CHARACTERS[character])
        return "".join(characters)


MISTRAL = Dialect(
    name="mistral",
    template_markers=(START,),
    token_markers=(START,),
    parser=MistralParser,
    form=_Form(),
    style=_Style(),
)
