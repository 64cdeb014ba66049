"""The grammar of an answer: free text until the model opens a call, then only what the declared tools allow. Pure.

The text is Lark for llguidance; what it matches, the dialect's parser reads as complete calls of declared tools.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from inference.calls.parser import Thinking
from inference.calls.tools import Tool
from inference.dialects import deepseek, dsml, gemma, glm, harmony, hermes, kimi, llama, mistral, pythonic, qwen_xml
from inference.dialects.detection import DialectName
from inference.grammars.arguments import Values, json_arguments, parameters
from inference.grammars.lark import ANY_TEXT, Grammar, either, literal, without

Choice = Literal["auto", "required"]
_LINE = "\n"
_SPACE = r"(/[ \t\n]{1,8}/)?"
"""What a model may write behind its calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """How a dialect writes a group of calls."""

    call: Callable[[Grammar, Tool], str]
    """One call, as Lark."""
    start: str = ""
    """The marker before a group; "" for dialects that open calls at the start of the message only."""
    opening: str = ""
    """What follows the marker, as Lark."""
    next_call: str | None = None
    """What parts two calls of a group; None where a group has one call."""
    end: str = ""
    """What ends a group."""
    next_group: str = ""
    """What a model writes between two groups."""
    never: tuple[str, ...] = ()
    """Other markup that no text may have."""
    bare: str = ""
    """Without a marker: a regular expression for what text can't begin with, for a call does."""
    tag: str = ""
    """Without a marker: what may stand before the calls."""


def answer_grammar(
    name: DialectName,
    tools: Sequence[Tool],
    *,
    choice: Choice = "auto",
    parallel: bool = True,
    thinking: Thinking | None = None,
    tokens: Mapping[str, int] | None = None,
    answer: str | None = None,
) -> str:
    """Lark for a whole answer of a model that may call (`auto`) or must (`required`) one of the tools.

    For a choice of one tool pass that tool alone, with `required`. With `parallel` false the answer ends after its
    first call. `tokens` are the model's special tokens by text: they are no part of any text, and markup that is one
    is written as one. `answer` is Lark that replaces the free text, for an answer that is no call; without tools it is
    all that may follow the thinking.

    Raises Unenforceable for a custom tool's grammar that can't be held where it stands.
    """
    if not tools and (answer is None or choice == "required"):
        raise ValueError("A grammar of calls needs a tool.")
    grammar = Grammar(tokens or {})
    answer = grammar.rule(answer) if answer is not None else None
    if name == "harmony":
        _harmony(grammar, tools, choice=choice, answer=answer)
        return str(grammar)
    form = _form(name, grammar)
    first, later, marks = _thinking(grammar, thinking)
    if not tools:
        grammar.start(f"{first} {answer}")
        return str(grammar)
    calls = grammar.rule(either(grammar.rule(form.call(grammar, tool)) for tool in tools))
    if parallel and form.next_call is not None:
        calls += f" ({grammar.mark(form.next_call)} {calls})*"
    group = grammar.rule(f"{form.opening} {calls} {grammar.mark(form.end)}")
    if not form.start:
        tag = f"({grammar.mark(form.tag)})?" if form.tag else ""
        text = grammar.terminal(f"{_text(form, marks)} & ~/[ \\t\\n]*{form.bare}{ANY_TEXT}/")
        grammar.start(
            f"{first} {tag} {group}" if choice == "required" else f"{first} ({tag} {group} | {answer or text})"
        )
        return str(grammar)
    more = f"({grammar.mark(form.next_group + form.start)} {group})* {_SPACE}" if parallel else ""
    if choice == "required":
        grammar.start(f"{first} {grammar.mark(form.start)} {group} {more}")
    elif answer is not None:
        grammar.start(f"{first} ({grammar.mark(form.start)} {group} {more} | {answer})")
    else:
        head = grammar.up_to(form.start, *form.never, *marks)
        text = grammar.text(form.start, *form.never, *marks)
        grammar.start(f"{first} ({head} {group} {later})* {text}" if parallel else f"{first} ({head} {group} | {text})")
    return str(grammar)


def _text(form: _Form, marks: tuple[str, ...]) -> str:
    return without((*form.never, *((form.tag,) if form.tag else ()), *marks))


def _thinking(grammar: Grammar, thinking: Thinking | None) -> tuple[str, str, tuple[str, ...]]:
    """What the model thinks first, what it may think later, and the marks that no text may have."""
    if thinking is None:
        return "", "", ()
    end = grammar.up_to(thinking.end)
    space = grammar.terminal(r"/[ \t\n]{0,8}/")
    block = grammar.rule(f"{space} {grammar.mark(thinking.start)} {end} {space}")
    return (f"{end} {space}" if thinking.opened else f"{block}?"), f"{block}?", (thinking.start, thinking.end)


def _object_call(key: str) -> Callable[[Grammar, Tool], str]:
    def call(grammar: Grammar, tool: Tool) -> str:
        before = f'{{"name": {json.dumps(tool.shown)}, "{key}": '
        return f"{literal(before)} {grammar.rule(json_arguments(tool))} {literal('}')}"

    return call


def _form(name: DialectName, grammar: Grammar) -> _Form:
    """Some dialects have two forms, told apart by the model's special tokens."""
    if name == "pythonic" and not grammar.is_token(pythonic.START):
        return _Form(call=_pythonic, next_call=", ", opening='"["', end="]", bare=r"\[")
    if name == "mistral" and grammar.is_token(mistral.START) and not grammar.is_token(mistral.ARGUMENTS):
        call = _object_call("arguments")
        return _Form(start=mistral.START, call=call, opening=r"/ ?\[/", next_call=", ", end="]")
    return _FORMS[name]


def _hermes(grammar: Grammar, tool: Tool) -> str:
    return f"{literal(_LINE)} {_object_call('arguments')(grammar, tool)} {grammar.mark(_LINE + hermes.END)}"


def _qwen_xml(grammar: Grammar, tool: Tool) -> str:
    def parameter(name: str, value: str, is_string: bool) -> str:
        return f"{literal(qwen_xml.PARAMETER)} {name} {literal('>' + _LINE)} {value}"

    end = f"\n{qwen_xml.PARAMETER_END}\n"
    never = (qwen_xml.PARAMETER_END, qwen_xml.FUNCTION_END, qwen_xml.END)
    inner = parameters(grammar, tool, parameter, Values(string_end=end, other_end=end, never=never))
    start = f"\n{qwen_xml.FUNCTION}{tool.shown}>\n"
    return f"{literal(start)} {inner} {grammar.mark(qwen_xml.FUNCTION_END + _LINE + qwen_xml.END)}"


def _glm(grammar: Grammar, tool: Tool) -> str:
    def parameter(name: str, value: str, is_string: bool) -> str:
        between = grammar.mark(glm.KEY_END + _LINE + glm.VALUE)
        return f"{grammar.mark(glm.KEY)} {name} {between} {value} {literal(_LINE)}"

    values = Values(string_end=glm.VALUE_END, other_end=glm.VALUE_END, never=(glm.END,))
    inner = parameters(grammar, tool, parameter, values)
    return f"{literal(tool.shown + _LINE)} {inner} {grammar.mark(glm.END)}"


def _mistral(grammar: Grammar, tool: Tool) -> str:
    return f"{literal(tool.shown)} {grammar.mark(mistral.ARGUMENTS)} {grammar.rule(json_arguments(tool))}"


def _deepseek(grammar: Grammar, tool: Tool) -> str:
    arguments = grammar.rule(json_arguments(tool))
    start, separator, end = map(grammar.mark, (deepseek.START, deepseek.SEPARATOR, deepseek.END))
    fence = literal(f"{tool.shown}\n{deepseek.FENCE}\n")
    fenced = f'"function" {separator} {fence} {arguments} {literal(_LINE + deepseek.FENCE_END)}'
    return f"{start} ({literal(tool.shown)} {separator} {arguments} | {fenced}) {end} {literal(_LINE)}?"


def _dsml(grammar: Grammar, tool: Tool) -> str:
    def parameter(name: str, value: str, is_string: bool) -> str:
        tag, kind = f'{dsml.PARAMETER} name="', f'" string="{"true" if is_string else "false"}">'
        return f"{grammar.mark(tag)} {name} {literal(kind)} {value} {literal(_LINE)}"

    end, never = dsml.PARAMETER_END, (dsml.END, dsml.GROUP_END)
    inner = parameters(grammar, tool, parameter, Values(string_end=end, other_end=end, never=never))
    start = f'\n{dsml.START} name="{tool.shown}">\n'
    return f"{grammar.mark(start)} {inner} {literal(_LINE)}? {grammar.mark(dsml.END)}"


def _kimi(grammar: Grammar, tool: Tool) -> str:
    start, arguments = grammar.mark(f"{kimi.START}functions.{tool.shown}:"), grammar.mark(kimi.ARGUMENTS)
    return f"{start} /[0-9]{{1,4}}/ {arguments} {grammar.rule(json_arguments(tool))} {grammar.mark(kimi.END)}"


def _gemma(start: str, end: str, quote: str) -> _Form:
    def call(grammar: Grammar, tool: Tool) -> str:
        def parameter(name: str, value: str, is_string: bool) -> str:
            return f'{name} ":" {grammar.mark(quote) if is_string else ""} {value}'

        inner = parameters(grammar, tool, parameter, Values(string_end=quote, between=","))
        return f"{literal(gemma.CALL + tool.shown + '{')} {inner} {literal('}')} {grammar.mark(end)}"

    return _Form(start=start, call=call)


def _pythonic(grammar: Grammar, tool: Tool) -> str:
    def parameter(name: str, value: str, is_string: bool) -> str:
        return f'{name} "=" {value}'

    inner = parameters(grammar, tool, parameter, Values(raw_strings=False, between=", "))
    return f"{literal(tool.shown + '(')} {inner} {literal(')')}"


def _harmony(grammar: Grammar, tools: Sequence[Tool], *, choice: Choice, answer: str | None) -> None:
    """A message has one call at most, and ends the answer with it."""
    text = grammar.text(*harmony.MARKS)
    closed = grammar.up_to(harmony.END, *harmony.MARKS)
    following = grammar.mark(f"{harmony.START}assistant")
    before = [
        grammar.rule(f"{grammar.mark(harmony.CHANNEL + channel + harmony.MESSAGE)} {closed} {following}")
        for channel in ("analysis", "commentary")
    ]
    calls = []
    for tool in tools:
        to, form = f" to={harmony.FUNCTIONS}{tool.shown}", f"{harmony.CONSTRAIN}json{harmony.MESSAGE}"
        behind = grammar.mark(f"{harmony.CHANNEL}commentary{to} {form}")
        ahead = f"{grammar.mark(f'{to}{harmony.CHANNEL}commentary ')} ({grammar.mark(harmony.CONSTRAIN)})?"
        ahead += f" {grammar.mark(f'json{harmony.MESSAGE}')}"
        calls.append(grammar.rule(f"({behind} | {ahead}) {grammar.rule(json_arguments(tool))}"))
    final = f"{grammar.mark(f'{harmony.CHANNEL}final{harmony.MESSAGE}')} {answer or text}"
    last = calls if choice == "required" else [*calls, final]
    grammar.start(f"({either(before)})* ({either(last)})")


_FORMS: dict[DialectName, _Form] = {
    "hermes": _Form(start=hermes.START, call=_hermes, next_group="\n"),
    "qwen-xml": _Form(start=qwen_xml.START, call=_qwen_xml, next_group="\n", never=(qwen_xml.FUNCTION,)),
    "glm": _Form(start=glm.START, call=_glm, next_group="\n"),
    "llama": _Form(call=_object_call("parameters"), next_call="; ", bare=r"\{", tag=llama.TAG),
    "mistral": _Form(start=mistral.START, call=_mistral),
    "deepseek": _Form(
        start=deepseek.GROUP, call=_deepseek, next_call="", end=deepseek.GROUP_END, never=(deepseek.START,)
    ),
    "deepseek-dsml": _Form(start=dsml.GROUP, call=_dsml, next_call="", end="\n" + dsml.GROUP_END, never=(dsml.START,)),
    "kimi": _Form(start=kimi.SECTION, call=_kimi, next_call="", end=kimi.SECTION_END, never=(kimi.START,)),
    "gemma": _gemma(gemma.START, gemma.END, gemma.QUOTE),
    "function-gemma": _gemma(gemma.FUNCTION_START, gemma.FUNCTION_END, gemma.ESCAPE),
    "pythonic": _Form(start=pythonic.START, opening='"["', call=_pythonic, next_call=", ", end="]" + pythonic.END),
}
