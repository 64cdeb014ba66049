"""Tool dialects and reasoning: how models write calls and thinking, read as it comes. Standard library only.

`detect` tells a model's dialect by its chat template; `new_parser` reads one answer of it.
"""

from collections.abc import Sequence

from inference.calls.parser import Parser, Thinking
from inference.calls.tools import CustomFormat, Tool
from inference.dialects.deepseek import DeepSeekParser
from inference.dialects.detection import Dialect, DialectName, detect, opens_thinking
from inference.dialects.dsml import DsmlParser
from inference.dialects.effort import Effort, thinking_arguments, thinking_budget
from inference.dialects.gemma import FunctionGemmaParser, GemmaParser
from inference.dialects.glm import GlmParser
from inference.dialects.grammar import answer_grammar
from inference.dialects.harmony import HarmonyParser
from inference.dialects.hermes import HermesParser
from inference.dialects.kimi import KimiParser
from inference.dialects.llama import LlamaParser
from inference.dialects.mistral import MistralParser
from inference.dialects.pythonic import PythonicParser
from inference.dialects.qwen_xml import QwenXmlParser
from inference.dialects.rendering import template_messages, template_tools
from inference.grammars.escaped_lark import Unenforceable
from inference.grammars.lark_depth import MAX_DEPTH, lark_depth

__all__ = [
    "MAX_DEPTH", "PARSERS", "CustomFormat", "Dialect", "DialectName", "Effort", "Parser", "Thinking", "Tool",
    "Unenforceable", "answer_grammar", "detect", "lark_depth", "markers", "new_parser", "opens_thinking",
    "template_messages", "template_tools", "thinking_arguments", "thinking_budget",
]  # fmt: skip

PARSERS: dict[DialectName, type[Parser]] = {
    "hermes": HermesParser,
    "qwen-xml": QwenXmlParser,
    "llama": LlamaParser,
    "mistral": MistralParser,
    "glm": GlmParser,
    "deepseek": DeepSeekParser,
    "deepseek-dsml": DsmlParser,
    "kimi": KimiParser,
    "harmony": HarmonyParser,
    "gemma": GemmaParser,
    "function-gemma": FunctionGemmaParser,
    "pythonic": PythonicParser,
}


def markers(dialect: Dialect) -> frozenset[str]:
    """What marks calls and thinking in this dialect: where one is a special token, an engine has to show it as text."""
    parser, thinking = PARSERS[dialect.name], dialect.thinking
    return frozenset(
        (*parser.starts, *parser.ends, *parser.inner, *((thinking.start, thinking.end) if thinking else ()))
    )


def new_parser(name: DialectName, tools: Sequence[Tool] = (), thinking: Thinking | None = None) -> Parser:
    """A parser for one answer; without tools nothing is taken for a call."""
    return PARSERS[name](tools, thinking)
