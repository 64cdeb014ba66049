"""DeepSeek: a group of calls, each a name and a JSON object; V3 and R1 write `function` and fence the object.

V3.1: `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>name<｜tool▁sep｜>{…}<｜tool▁call▁end｜>…<｜tool▁calls▁end｜>`.
V3 and R1: `…<｜tool▁call▁begin｜>function<｜tool▁sep｜>name\\n```json\\n{…}\\n```<｜tool▁call▁end｜>…`.
Source: their chat templates.
"""
# ruff: noqa: RUF001, RUF002 - the markers are spelt with full-width bars

from inference.calls.call_object import read_arguments
from inference.calls.parser import NoCall, Parser
from inference.calls.source import Markers, Steps

GROUP, GROUP_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
START, SEPARATOR, END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
FENCE, FENCE_END = "```json", "```"
_AFTER_NAME = Markers((SEPARATOR, END, GROUP_END))
_BEFORE_OBJECT = Markers((FENCE, "{", END, GROUP_END))


class DeepSeekParser(Parser):
    starts = (GROUP, START)
    ends = (END, GROUP_END)
    inner = (SEPARATOR,)

    def read_call(self, marker: str) -> Steps[None]:
        if marker == GROUP:
            yield from self.source.space()
            if not (yield from self.source.accept(START)):
                raise NoCall
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
