"""Hermes and Qwen: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, one block a call.

Source: the chat templates of NousResearch's Hermes 2 Pro and of Qwen 2.5 and 3.
"""

from inference.calls.call_object import read_call_object
from inference.calls.parser import NoCall, Parser
from inference.calls.source import Steps

START, END = "<tool_call>", "</tool_call>"


class HermesParser(Parser):
    starts = (START,)
    ends = (END,)

    def read_call(self, marker: str) -> Steps[None]:
        yield from self.source.space()
        if not (yield from self.source.ahead("{")):
            raise NoCall
        yield from read_call_object(self)
        yield from self.source.space()
        yield from self.source.expect(END)
