"""Reads JSON text of any depth without reaching the interpreter's recursion limit. Pure."""

import json
from typing import Any

MAX_DEPTH = 100
"""Most levels of a value, as in a request: templates and encoders walk it recursively."""


def loaded(text: str) -> Any:
    """The value of a JSON text; None for a text that is not valid JSON, or has more than MAX_DEPTH levels."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return value
    return None
