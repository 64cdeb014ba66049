"""Lark for llguidance: how calls, their arguments and callers' grammars are written down. Pure."""
