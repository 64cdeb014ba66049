"""Lark for llguidance: how answers, calls, their arguments and callers' grammars are written down. Pure."""

from inference.grammars.arguments import json_input
from inference.grammars.depth import MAX_DEPTH, lark_depth
from inference.grammars.escaped_lark import Unenforceable
from inference.grammars.lark import json_value
from inference.grammars.patterns import for_json_strings

__all__ = ["MAX_DEPTH", "Unenforceable", "for_json_strings", "json_input", "json_value", "lark_depth"]
