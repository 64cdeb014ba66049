"""What the files of an MLX directory say of its chat template and its special tokens. Standard library only.

Web processes and commands read this without a model library.
"""

import json
from pathlib import Path
from typing import Any

from inference.dialects import Dialect, detect


def read_dialect(directory: Path) -> Dialect:
    """How the model calls tools and thinks, by its template and its tokens; files that can't be read say nothing."""
    return detect(chat_template(directory), added_tokens(directory))


def chat_template(directory: Path) -> str:
    """The template for conversations with tools, where there are several; "" for a model without one."""
    for name in ("chat_template.jinja", "chat_template.json", "tokenizer_config.json"):
        file = directory / name
        try:
            text = file.read_text(encoding="utf-8")
            template = text if file.suffix == ".jinja" else _tool_template(json.loads(text).get("chat_template"))
        except (OSError, ValueError, AttributeError):
            continue
        if template:
            return template
    return ""


def added_tokens(directory: Path) -> dict[str, int]:
    """The tokens outside the vocabulary proper, by their text."""
    return {token["content"]: token["id"] for token in _added(directory)}


def special_tokens(directory: Path) -> dict[str, int]:
    """The tokens that stand in no text, by how they are written."""
    return {token["content"]: token["id"] for token in _added(directory) if token.get("special")}


def _tool_template(value: Any) -> str:
    """A template, or the one of a list of named ones that is for tools."""
    if isinstance(value, list):
        named = {entry["name"]: entry["template"] for entry in value if isinstance(entry, dict)}
        value = named.get("tool_use") or named.get("default")
    return value if isinstance(value, str) else ""


def _added(directory: Path) -> list[dict[str, Any]]:
    try:
        tokenizer = json.loads((directory / "tokenizer.json").read_text(encoding="utf-8"))
        return [token for token in tokenizer.get("added_tokens", []) if isinstance(token, dict)]
    except (OSError, ValueError, AttributeError):
        return []
