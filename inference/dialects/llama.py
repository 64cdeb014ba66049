"""Llama 3: `{"name": …, "parameters": {…}}` as the whole message, with or without `<|python_tag|>` before it.

Without the tag a call opens only at the start of the message, and only for a declared tool: any other JSON is text.
Several calls are separated by semicolons. Source: Meta's prompt formats for Llama 3.1 to 3.3.
"""

from inference.calls.call_object import read_call_object
from inference.calls.parser import NotACall, Parser
from inference.calls.source import Steps
from inference.dialects.dialect import Dialect
from inference.grammars.answer import CallGroups, named_object

TAG = "<|python_tag|>"


class LlamaParser(Parser):
    starts = (TAG,)

    def read_call(self, marker: str) -> Steps[None]:
        yield from self.source.space()
        if not (yield from self.source.ahead("{")):
            raise NotACall
        yield from self._calls()

    def read_bare_call(self) -> Steps[None]:
        yield from self.source.space()
        yield from self._calls(only_call_keys=True)

    def _calls(self, *, only_call_keys: bool = False) -> Steps[None]:
        while True:
            yield from read_call_object(self, only_call_keys=only_call_keys)
            yield from self.source.space()
            separated = yield from self.source.accept(";", ",")
            yield from self.source.space()
            if not (separated and (yield from self.source.ahead("{"))):
                return


LLAMA = Dialect(
    name="llama",
    template_markers=(TAG, '"parameters": dictionary of argument name'),
    token_markers=(TAG,),
    parser=LlamaParser,
    form=CallGroups(call=named_object("parameters"), next_call="; ", bare=r"\{", tag=TAG),
)
