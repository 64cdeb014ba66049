"""Which dialect a model speaks, and how it thinks, by its chat template and its tokens. Pure."""
# ruff: noqa: RUF001 - markers are spelt with full-width bars

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from inference.calls.parser import Thinking

DialectName = Literal[
    "hermes", "qwen-xml", "llama", "mistral", "glm", "deepseek", "deepseek-dsml", "kimi", "harmony", "gemma",
    "function-gemma", "pythonic",
]  # fmt: skip

_MARKS: tuple[tuple[str, DialectName], ...] = (
    ("<|channel|>analysis", "harmony"),
    ("｜DSML｜", "deepseek-dsml"),
    ("<｜tool▁calls▁begin｜>", "deepseek"),
    ("<|tool_calls_section_begin|>", "kimi"),
    ("<|tool_call>", "gemma"),
    ("<start_function_call>", "function-gemma"),
    ("<arg_key>", "glm"),
    ("[TOOL_CALLS]", "mistral"),
    ("<|tool_call_start|>", "pythonic"),
    ("<|tool_list_start|>", "pythonic"),
    ("<function=", "qwen-xml"),
    ("<tool_call>", "hermes"),
    ("<|python_tag|>", "llama"),
    ('"parameters": dictionary of argument name', "llama"),
)
"""Told apart by what stands in the template, the more telling first."""
_TOKENS: tuple[tuple[str, DialectName], ...] = (
    ("<|tool_calls_section_begin|>", "kimi"),
    ("<|tool_call_start|>", "pythonic"),
    ("[TOOL_CALLS]", "mistral"),
    ("<|python_tag|>", "llama"),
)
"""Told by special tokens, for templates that take tools and don't show how a call looks."""
_THINKING = (("<think>", "</think>"), ("[THINK]", "[/THINK]"), ("<|channel>thought", "<channel|>"))
_SWITCHES = {
    "enable_thinking": re.compile(r"\benable_thinking\b"),
    "thinking": re.compile(r"\b(?:if|elif|not|and|or)\s+thinking\b"),  # the word stands for other things, too
    "reasoning_effort": re.compile(r"\breasoning_effort\b"),
}
_DUMPS_ARGUMENTS = re.compile(r"arguments['\"\]]*\s*\|\s*tojson")
_USES_TOOLS = re.compile(r"\{[%{][^}]*\btools\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What is known of how a model calls tools and thinks."""

    name: DialectName
    own_template: bool = False
    """The model's template knows no tools: they are shown by a template of ours."""
    thinking: Thinking | None = None
    """None for models that don't think, and for Harmony, whose channels are a part of the dialect."""
    arguments_as_text: bool = False
    """The template writes the arguments of a call as they are given, and takes no object."""
    one_call_a_message: bool = False
    """The template refuses a message with several calls."""
    reasoning_key: Literal["reasoning_content", "thinking", ""] = ""
    """Where a message has its reasoning; "" for templates that have no place for it."""
    switches: tuple[str, ...] = ()
    """The arguments of the template that turn thinking on and off, or say how much."""

    @property
    def thinks(self) -> bool:
        return self.thinking is not None or self.name == "harmony"


def detect(template: str, tokens: Iterable[str] = ()) -> Dialect:
    """The dialect of a model with this chat template and these special or added tokens.

    A template that takes tools, and shows none of the known forms, is taken for one of Hermes', the most common; so is
    one that knows no tools, with a template of ours.
    """
    known = frozenset(tokens)
    takes_tools = bool(_USES_TOOLS.search(template))
    name = _first(_MARKS, template) or ((takes_tools and _first(_TOKENS, known)) or None)
    marks = next(((start, end) for start, end in _THINKING if end in template or {start, end} <= known), None)
    if name == "harmony":
        marks = None
    return Dialect(
        name=name or "hermes",
        own_template=not takes_tools,
        thinking=Thinking(start=marks[0], end=marks[1]) if marks else None,
        arguments_as_text=name in ("deepseek", "deepseek-dsml") and not _DUMPS_ARGUMENTS.search(template),
        one_call_a_message="only supports single tool-calls" in template,
        reasoning_key=_reasoning_key(template),
        switches=tuple(switch for switch, used in _SWITCHES.items() if used.search(template)),
    )


def _reasoning_key(template: str) -> Literal["reasoning_content", "thinking", ""]:
    if "reasoning_content" in template:
        return "reasoning_content"
    return "thinking" if re.search(r"message(?:\.thinking|\['thinking'\])", template) else ""


def opens_thinking(prompt_end: str, thinking: Thinking) -> bool:
    """Whether a prompt that ends in this text ends inside a block of thinking."""
    start = prompt_end.rfind(thinking.start)
    return start >= 0 and not prompt_end[start + len(thinking.start) :].strip()


def _first(marks: Iterable[tuple[str, DialectName]], where: str | frozenset[str]) -> DialectName | None:
    return next((name for mark, name in marks if mark in where), None)
