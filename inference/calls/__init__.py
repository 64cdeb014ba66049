"""Reads calls out of a model's text as it comes: the shared part of all dialects' parsers. Standard library only."""

from inference.calls.parser import Parser
from inference.calls.pieces import (
    CallArguments,
    CallClosed,
    CallInput,
    CallOpened,
    Phase,
    Piece,
    Reasoning,
    Span,
    Text,
    merged,
)
from inference.calls.thinking import Thinking
from inference.calls.tools import CustomFormat, Tool

__all__ = [
    "CallArguments",
    "CallClosed",
    "CallInput",
    "CallOpened",
    "CustomFormat",
    "Parser",
    "Phase",
    "Piece",
    "Reasoning",
    "Span",
    "Text",
    "Thinking",
    "Tool",
    "merged",
]
