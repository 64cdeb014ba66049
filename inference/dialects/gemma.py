"""Gemma: `call:name{key:value,…}` between markers, keys bare, strings between marks of their own.

FunctionGemma: `<start_function_call>call:name{key:<escape>text<escape>}<end_function_call>`. Gemma 4:
`<|tool_call>call:name{key:<|"|>text<|"|>}<tool_call|>`. Source: their chat templates.
"""

import re
from typing import ClassVar

from inference.calls.parser import NoCall, Parser
from inference.calls.source import Malformed, Steps
from inference.calls.values import Notation, copy_value, json_string, raw_string

CALL = "call:"
FUNCTION_START, FUNCTION_END, ESCAPE = "<start_function_call>", "<end_function_call>", "<escape>"
START, END, QUOTE = "<|tool_call>", "<tool_call|>", '<|"|>'
_NAME = re.compile(r"[A-Za-z0-9_:.-]+")


class _GemmaParser(Parser):
    notation: ClassVar[Notation]

    def read_call(self, marker: str) -> Steps[None]:
        yield from self.source.space()
        if not (yield from self.source.accept(CALL)):
            raise NoCall
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
