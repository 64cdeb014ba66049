"""gpt-oss, Harmony: messages with a header of channel and recipient before their text.

`<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>commentary to=functions.name <|constrain|>json
<|message|>{…}<|call|>`, or the recipient before the channel. The prompt ends in `<|start|>assistant`. Source: OpenAI's
Harmony guide. Analysis is reasoning, commentary and final are text with a phase, a message to a declared function is a
call; messages to other recipients are dropped.
"""

import re
from functools import partial

from inference.calls.call_object import read_arguments
from inference.calls.parser import Parser
from inference.calls.pieces import Phase, Reasoning, Text
from inference.calls.source import Emit, Malformed, Markers, Steps
from inference.calls.thinking import Thinking
from inference.dialects.dialect import Dialect
from inference.grammars.answer import AnswerParts
from inference.grammars.arguments import json_arguments
from inference.grammars.lark import Grammar, either
from inference.prompts.conversation import Answer, ChatMessage
from inference.prompts.style import MessageStyle

START, MESSAGE, CHANNEL, CONSTRAIN = "<|start|>", "<|message|>", "<|channel|>", "<|constrain|>"
END, RETURN, CALL = "<|end|>", "<|return|>", "<|call|>"
FUNCTIONS = "functions."
MARKERS = (END, RETURN, CALL, START, MESSAGE, CHANNEL, CONSTRAIN)
_BODY_MARKERS = Markers(MARKERS)
_HEADER_ENDS = Markers((MESSAGE, END, RETURN, CALL))
_HEADER_STARTS = (START, MESSAGE, CHANNEL, CONSTRAIN, END, RETURN, CALL, " to=")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")
_RECIPIENT = re.compile(r"\bto=([^\s<]+)")
_PHASES: dict[str, Phase] = {"commentary": "commentary", "final": "final_answer"}


class HarmonyParser(Parser):
    inner = MARKERS
    may_think = True
    _begun = ""
    """The part of the next header that was read."""

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
        marker = MESSAGE
        while marker in (MESSAGE, CONSTRAIN):  # out of place: dropped
            marker = yield from self.source.until(_BODY_MARKERS, emit)
        self._is_thinking = False
        self._begun = marker if marker == CHANNEL else ""

    def _say(self, channel: str, text: str) -> None:
        at = self.source.position
        is_thought = channel == "analysis"
        self.emit(Reasoning(text) if is_thought else Text(text, _PHASES.get(channel), ((at, at + len(text)),)))


def _ignore(text: str) -> None:
    pass


class _Form:
    """A message has one call at most, and ends the answer with it."""

    def write(self, grammar: Grammar, parts: AnswerParts) -> None:
        text = grammar.text(*MARKERS)
        closed = grammar.up_to(END, *MARKERS)
        following = grammar.markup(f"{START}assistant")
        before = [
            grammar.rule(f"{grammar.markup(CHANNEL + channel + MESSAGE)} {closed} {following}")
            for channel in ("analysis", "commentary")
        ]
        calls = []
        for tool in parts.tools:
            to, form = f" to={FUNCTIONS}{tool.shown}", f"{CONSTRAIN}json{MESSAGE}"
            behind = grammar.markup(f"{CHANNEL}commentary{to} {form}")
            ahead = f"{grammar.markup(f'{to}{CHANNEL}commentary ')} ({grammar.markup(CONSTRAIN)})?"
            ahead += f" {grammar.markup(f'json{MESSAGE}')}"
            calls.append(grammar.rule(f"({behind} | {ahead}) {grammar.rule(json_arguments(tool))}"))
        final = f"{grammar.markup(f'{CHANNEL}final{MESSAGE}')} {parts.answer or text}"
        last = calls if parts.must_call else [*calls, final]
        grammar.start(f"({either(before)})* ({either(last)})")


class _Style(MessageStyle):
    """One call per message, its output right after it: the template names an output by the call before."""

    def answer_messages(self, answer: Answer, thinking: Thinking | None) -> list[ChatMessage]:
        messages: list[ChatMessage] = []
        thought = {"thinking": answer.thought} if answer.thought else {}
        if not answer.calls:
            return [{"role": "assistant", "content": answer.text, **thought}]
        for call in answer.calls:
            before = "\n\n".join(filter(None, (answer.thought, answer.text))) if not messages else ""
            function = {"name": call.name, "arguments": call.as_object()}
            tool_calls = [{"id": call.id, "type": "function", "function": function}]
            message: ChatMessage = {"role": "assistant", "content": "", "tool_calls": tool_calls}
            messages.append(message | ({"thinking": before} if before else {}))  # it takes one of text and thinking
            if call.output is not None:
                output = {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": call.output}
                messages.append(output)
        return messages


HARMONY = Dialect(
    name="harmony",
    template_markers=(f"{CHANNEL}analysis",),
    thinks_in_channels=True,
    parser=HarmonyParser,
    form=_Form(),
    style=_Style(),
)
