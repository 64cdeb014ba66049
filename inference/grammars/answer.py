"""The grammar of an answer: free text until the model opens a call, then only what the declared tools allow. Pure.

The text is Lark for llguidance; what it matches, the dialect's parser reads as complete calls of declared tools.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from inference.calls.thinking import Thinking
from inference.calls.tools import Tool
from inference.grammars.arguments import json_arguments
from inference.grammars.lark import ANY_TEXT, Grammar, either, literal, without

Choice = Literal["auto", "required"]
CallRule = Callable[[Grammar, Tool], str]
"""Lark for one call of a tool."""
_SPACE = r"(/[ \t\n]{1,8}/)?"
"""White space that a model may write after its calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerParts:
    """The parts that an answer may have."""

    tools: Sequence[Tool]
    must_call: bool
    parallel: bool
    """There may be several calls; else the answer ends after its first."""
    thinking: Thinking | None
    answer: str | None
    """The name of a rule that replaces the free text; None for free text."""


class AnswerForm(Protocol):
    """How a dialect writes answers with calls."""

    def write(self, grammar: Grammar, parts: AnswerParts) -> None:
        """Add the rules of a whole answer, and the start.

        Raises Unenforceable for a custom tool's grammar that can't be enforced in this form.
        """


def answer_grammar(
    form: AnswerForm,
    tools: Sequence[Tool],
    *,
    choice: Choice = "auto",
    parallel: bool = True,
    thinking: Thinking | None = None,
    tokens: Mapping[str, int] | None = None,
    answer: str | None = None,
) -> str:
    """Lark for a whole answer of a model that may call (`auto`) or must call (`required`) one of the tools.

    For a choice of one tool pass that tool alone, with `required`. With `parallel` false the answer ends after its
    first call. `tokens` are the model's special tokens by text: they are not part of any text, and markup that is one
    is written as one. `answer` is Lark that replaces the free text, for an answer without calls; without tools it is
    everything after the thinking.

    Raises Unenforceable for a custom tool's grammar that can't be enforced in this form.
    """
    if not tools and (answer is None or choice == "required"):
        raise ValueError("A grammar of calls needs a tool.")
    grammar = Grammar(tokens or {})
    parts = AnswerParts(
        tools=tools,
        must_call=choice == "required",
        parallel=parallel,
        thinking=thinking,
        answer=grammar.rule(answer) if answer is not None else None,
    )
    form.write(grammar, parts)
    return str(grammar)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallGroups:
    """An AnswerForm: thinking, then text with groups of calls, each group behind a marker or at the start."""

    call: CallRule
    start: str = ""
    """The marker before a group; "" for dialects that open calls at the start of the message only."""
    opening: str = ""
    """Lark for the text after the marker."""
    next_call: str | None = None
    """The separator of two calls of a group; None for groups of one call."""
    end: str = ""
    """The end of a group."""
    next_group: str = ""
    """The separator of two groups."""
    never: tuple[str, ...] = ()
    """Other markup that text can't contain."""
    bare: str = ""
    """Without a marker: a regular expression for the beginning of calls, with which no text begins."""
    tag: str = ""
    """Without a marker: an optional tag before the calls."""

    def write(self, grammar: Grammar, parts: AnswerParts) -> None:
        first, later, markers = _thinking(grammar, parts.thinking)
        if not parts.tools:
            grammar.start(f"{first} {parts.answer}")
            return
        calls = grammar.rule(either(grammar.rule(self.call(grammar, tool)) for tool in parts.tools))
        if parts.parallel and self.next_call is not None:
            calls += f" ({grammar.markup(self.next_call)} {calls})*"
        group = grammar.rule(f"{self.opening} {calls} {grammar.markup(self.end)}")
        if self.start:
            grammar.start(self._marked(grammar, parts, group, first, later, markers))
        else:
            grammar.start(self._bare(grammar, parts, group, first, markers))

    def _bare(self, grammar: Grammar, parts: AnswerParts, group: str, first: str, markers: tuple[str, ...]) -> str:
        tag = f"({grammar.markup(self.tag)})?" if self.tag else ""
        never = (*self.never, *((self.tag,) if self.tag else ()), *markers)
        text = grammar.terminal(f"{without(never)} & ~/[ \\t\\n]*{self.bare}{ANY_TEXT}/")
        if parts.must_call:
            return f"{first} {tag} {group}"
        return f"{first} ({tag} {group} | {parts.answer or text})"

    def _marked(
        self, grammar: Grammar, parts: AnswerParts, group: str, first: str, later: str, markers: tuple[str, ...]
    ) -> str:
        more = f"({grammar.markup(self.next_group + self.start)} {group})* {_SPACE}" if parts.parallel else ""
        if parts.must_call:
            return f"{first} {grammar.markup(self.start)} {group} {more}"
        if parts.answer is not None:
            return f"{first} ({grammar.markup(self.start)} {group} {more} | {parts.answer})"
        head = grammar.up_to(self.start, *self.never, *markers)
        text = grammar.text(self.start, *self.never, *markers)
        if parts.parallel:
            return f"{first} ({head} {group} {later})* {text}"
        return f"{first} ({head} {group} | {text})"


def _thinking(grammar: Grammar, thinking: Thinking | None) -> tuple[str, str, tuple[str, ...]]:
    """Rules for thinking at the beginning and later, and the markers that text can't contain."""
    if thinking is None:
        return "", "", ()
    end = grammar.up_to(thinking.end)
    space = grammar.terminal(r"/[ \t\n]{0,8}/")
    block = grammar.rule(f"{space} {grammar.markup(thinking.start)} {end} {space}")
    return (f"{end} {space}" if thinking.opened else f"{block}?"), f"{block}?", (thinking.start, thinking.end)


def named_object(key: str) -> CallRule:
    """The rule of a call that is a JSON object with a name, and the arguments under `key`."""

    def call(grammar: Grammar, tool: Tool) -> str:
        before = f'{{"name": {json.dumps(tool.shown)}, "{key}": '
        return f"{literal(before)} {grammar.rule(json_arguments(tool))} {literal('}')}"

    return call
