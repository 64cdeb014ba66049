"""Stored items with the additional data that a client requests by `include`."""

from collections.abc import Collection
from typing import Any

from .blobs import seal_reasoning

LOGPROBS = "message.output_text.logprobs"
ENCRYPTED_REASONING = "reasoning.encrypted_content"


def shown_items(items: list[dict[str, Any]], *, include: Collection[str], owner: str) -> list[dict[str, Any]]:
    """The items, without log-probabilities unless they are included, and with sealed reasoning if that is included."""
    return [_shown(item, include, owner) for item in items]


def _shown(item: dict[str, Any], include: Collection[str], owner: str) -> dict[str, Any]:
    if item["type"] == "message" and LOGPROBS not in include and isinstance(item["content"], list):
        return {
            **item,
            "content": [{**part, "logprobs": []} if part.get("logprobs") else part for part in item["content"]],
        }
    if item["type"] == "reasoning" and ENCRYPTED_REASONING in include and not item.get("encrypted_content"):
        text = "".join(part["text"] for part in item.get("content") or ())
        return {**item, "encrypted_content": seal_reasoning(text, owner=owner)} if text else item
    return item
