"""Finds a model's dialect, and how it thinks, by its chat template and its tokens. Pure."""

import re
from collections.abc import Iterable
from dataclasses import replace

from inference.calls.thinking import Thinking
from inference.dialects.deepseek import DEEPSEEK, DEEPSEEK_DSML
from inference.dialects.dialect import Dialect
from inference.dialects.gemma import FUNCTION_GEMMA, GEMMA
from inference.dialects.glm import GLM
from inference.dialects.harmony import HARMONY
from inference.dialects.hermes import HERMES
from inference.dialects.kimi import KIMI
from inference.dialects.llama import LLAMA
from inference.dialects.mistral import MISTRAL
from inference.dialects.own_template import OWN_TEMPLATE
from inference.dialects.pythonic import PYTHONIC
from inference.dialects.qwen_xml import QWEN_XML
from inference.prompts.style import ReasoningKey

DIALECTS = {
    dialect.name: dialect
    for dialect in (
        HARMONY, DEEPSEEK_DSML, DEEPSEEK, KIMI, GEMMA, FUNCTION_GEMMA, GLM, MISTRAL, PYTHONIC, QWEN_XML, HERMES, LLAMA,
    )
}  # fmt: skip
"""All dialects by name, in the order in which their markers are searched for: the more specific ones first."""

_THINKING = (
    Thinking(),
    Thinking(start="[THINK]", end="[/THINK]"),
    Thinking(start="<|channel>thought", end="<channel|>"),
)
_SWITCHES = {
    "enable_thinking": re.compile(r"\benable_thinking\b"),
    "thinking": re.compile(r"\b(?:if|elif|not|and|or)\s+thinking\b"),  # the word has other uses, too
    "reasoning_effort": re.compile(r"\breasoning_effort\b"),
}
_DUMPS_ARGUMENTS = re.compile(r"arguments['\"\]]*\s*\|\s*tojson")
_USES_TOOLS = re.compile(r"\{[%{][^}]*\btools\b")
_REFUSES_SEVERAL_CALLS = "only supports single tool-calls"


def detect(template: str, tokens: Iterable[str] = ()) -> Dialect:
    """The dialect of a model with this chat template and these special or added tokens.

    A template that takes tools and has none of the known forms is treated as Hermes, the most common one; so is one
    that takes no tools, with a built-in template.
    """
    known = frozenset(tokens)
    takes_tools = bool(_USES_TOOLS.search(template))
    dialect = _by_template(template) or (_by_tokens(known) if takes_tools else None) or HERMES
    thinking = (kind for kind in _THINKING if kind.end in template or {kind.start, kind.end} <= known)
    style = dialect.style if takes_tools else OWN_TEMPLATE.style
    return replace(
        dialect,
        style=replace(
            style,
            arguments_as_text=style.arguments_as_text and not _DUMPS_ARGUMENTS.search(template),
            one_call_per_message=_REFUSES_SEVERAL_CALLS in template,
            reasoning_key=_reasoning_key(template),
        ),
        thinking=None if dialect.thinks_in_channels else next(thinking, None),
        switches=tuple(switch for switch, used in _SWITCHES.items() if used.search(template)),
    )


def _by_template(template: str) -> Dialect | None:
    return next(
        (dialect for dialect in DIALECTS.values() if any(m in template for m in dialect.template_markers)), None
    )


def _by_tokens(tokens: frozenset[str]) -> Dialect | None:
    return next((dialect for dialect in DIALECTS.values() if not tokens.isdisjoint(dialect.token_markers)), None)


def _reasoning_key(template: str) -> ReasoningKey:
    if "reasoning_content" in template:
        return "reasoning_content"
    return "thinking" if re.search(r"message(?:\.thinking|\['thinking'\])", template) else ""
