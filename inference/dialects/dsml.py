"""DeepSeek V3.2: a block of invocations with a tag for each parameter, which says itself whether it is a string.

`<｜DSML｜function_calls>\\n<｜DSML｜invoke name="…">\\n
<｜DSML｜parameter name="…" string="true">…</｜DSML｜parameter>\\n
</｜DSML｜invoke>\\n</｜DSML｜function_calls>`. Source: the encoding that DeepSeek published with V3.2.
"""
# ruff: noqa: RUF001, RUF002 - the markers are spelt with full-width bars

import re

from inference.calls.parser import NoCall, Parser
from inference.calls.source import Malformed, Markers, Steps
from inference.calls.typed_object import TypedObject

MARK = "｜DSML｜"
GROUP, GROUP_END = f"<{MARK}function_calls>", f"</{MARK}function_calls>"
START, END = f"<{MARK}invoke", f"</{MARK}invoke>"
PARAMETER, PARAMETER_END = f"<{MARK}parameter", f"</{MARK}parameter>"
_VALUE_ENDS = Markers((PARAMETER_END, END, GROUP_END))
_TAG_ENDS = Markers((">", "<"))
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


class DsmlParser(Parser):
    starts = (GROUP, START)
    ends = (END, GROUP_END)
    inner = (MARK,)

    def read_call(self, marker: str) -> Steps[None]:
        if marker == GROUP:
            yield from self.source.space()
            if not (yield from self.source.accept(START)):
                raise NoCall
        tool = self.open_call((yield from self._attributes())["name"])
        arguments = TypedObject(self, tool, line_breaks=False, untyped_as_string=True)
        while True:
            yield from self.source.space()
            if (yield from self.source.expect(PARAMETER, END)) == END:
                break
            tag = yield from self._attributes()
            yield from arguments.read_value(tag["name"], _VALUE_ENDS, as_string=tag.get("string") != "false")
            yield from self.source.accept(PARAMETER_END)
        arguments.close()
        self.close_call()

    def _attributes(self) -> Steps[dict[str, str]]:
        found = dict(_ATTRIBUTE.findall((yield from self.source.text_until(_TAG_ENDS))))
        if not found.get("name") or not (yield from self.source.accept(">")):
            raise Malformed
        return found
