"""Reads the chat template and the special tokens of an MLX directory. Standard library only.

Web processes and commands use it, without a model library.
"""

import json
from pathlib import Path
from typing import Any

from inference.dialects import Dialect, detect


def read_dialect(directory: Path) -> Dialect:
    """The dialect of the model by its template and its tokens; files that can't be read are ignored."""
    return detect(chat_template(directory), added_tokens(directory))


def chat_template(directory: Path) -> str:
    """The chat template, of several the one for tools; "" for a model without one."""
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
    """The ids of the tokens that were added to the vocabulary, by their text."""
    return {token["content"]: token["id"] for token in _added(directory)}


def special_tokens(directory: Path) -> dict[str, int]:
    """The ids of the tokens that are not text, by how they are written."""
    return {token["content"]: token["id"] for token in _added(directory) if token.get("special")}


def _tool_template(value: Any) -> str:
    """The template, or the one for tools from a list of named ones."""
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
