"""gpt-oss, Harmony: messages with a header of channel and recipient before their text.

`<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>commentary to=functions.name <|constrain|>json
<|message|>{…}<|call|>`, or the recipient before the channel. The prompt ends in `<|start|>assistant`. Source: OpenAI's
Harmony guide. Analysis is reasoning, commentary and final are text with a phase, a message to a declared function is a
call; messages to anybody else are dropped.
"""

import re
from functools import partial

from inference.calls.call_object import read_arguments
from inference.calls.parser import Parser
from inference.calls.pieces import Phase, Reasoning, Text
from inference.calls.source import Emit, Malformed, Markers, Steps

START, MESSAGE, CHANNEL, CONSTRAIN = "<|start|>", "<|message|>", "<|channel|>", "<|constrain|>"
END, RETURN, CALL = "<|end|>", "<|return|>", "<|call|>"
FUNCTIONS = "functions."
MARKS = (END, RETURN, CALL, START, MESSAGE, CHANNEL, CONSTRAIN)
_BODY_MARKS = Markers(MARKS)
_HEADER_ENDS = Markers((MESSAGE, END, RETURN, CALL))
_HEADER_STARTS = (START, MESSAGE, CHANNEL, CONSTRAIN, END, RETURN, CALL, " to=")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
_RECIPIENT = re.compile(r"\bto=([^\s<]+)")
_PHASES: dict[str, Phase] = {"commentary": "commentary", "final": "final_answer"}


class HarmonyParser(Parser):
    inner = MARKS
    _begun = ""
    """What of the next header is read."""

    def read(self) -> Steps[None]:
        if not (yield from self.source.ahead(*_HEADER_STARTS)):
            yield from self._body("final", "")  # no header at all
        while True:
            header = self._begun + (yield from self.source.text_until(_HEADER_ENDS))
            self._begun = ""
            if (yield from self.source.expect(*_HEADER_ENDS.texts)) != MESSAGE:
                continue
            channel, recipient = _CHANNEL.search(header), _RECIPIENT.search(header)
            yield from self._body(channel[1] if channel else "final", recipient[1] if recipient else "")

    def _body(self, channel: str, recipient: str) -> Steps[None]:
        emit: Emit = partial(self._say, channel)
        self._is_thinking = channel == "analysis" and not recipient
        if recipient:
            emit = _ignore
            try:
                self.open_call(recipient.removeprefix(FUNCTIONS))
                yield from self.source.space()
                yield from read_arguments(self)
                self.close_call()
            except Malformed:
                if self.in_call:
                    self.close_call(complete=False)
        mark = MESSAGE
        while mark in (MESSAGE, CONSTRAIN):  # out of place: dropped
            mark = yield from self.source.until(_BODY_MARKS, emit)
        self._is_thinking = False
        self._begun = mark if mark == CHANNEL else ""

    def _say(self, channel: str, text: str) -> None:
        at = self.source.position
        is_thought = channel == "analysis"
        self.emit(Reasoning(text) if is_thought else Text(text, _PHASES.get(channel), ((at, at + len(text)),)))


def _ignore(text: str) -> None:
    pass
