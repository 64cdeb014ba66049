"""Mistral: `[TOOL_CALLS]` before a JSON list of calls, or before each `name[ARGS]{…}`.

The list is what models up to tokenizer version 7 write, `[{"name": …, "arguments": {…}, "id": …}]`; later ones write a
name, maybe `[CALL_ID]` and an id, `[ARGS]` (some leave it out) and an object. A call has no end marker: it ends with
its object. Source: the chat templates of Mistral Small 3, Ministral 3, Devstral and Magistral.
"""

import re

from inference.calls.call_object import read_arguments, read_call_object
from inference.calls.parser import NoCall, Parser
from inference.calls.source import Steps

START, ID, ARGUMENTS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
_NAME = re.compile(r"[A-Za-z0-9_:.-]+")


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
            raise NoCall
        self.open_call(name)
        yield from read_arguments(self)
        self.close_call()
