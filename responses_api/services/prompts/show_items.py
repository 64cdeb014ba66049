"""Stored items with the additional data that a client requests by `include`."""

from collections.abc import Collection
from typing import TypeVar

from responses_api.protocol.objects import Item, OutputItem
from responses_api.protocol.objects.items import OutputText, Refusal

from .blobs import seal_reasoning

LOGPROBS = "message.output_text.logprobs"
ENCRYPTED_REASONING = "reasoning.encrypted_content"


Shown = TypeVar("Shown", Item, OutputItem)


def shown_items(items: list[Shown], *, include: Collection[str], owner: str) -> list[Shown]:
    """The items, without log-probabilities unless they are included, and with sealed reasoning if that is included."""
    return [_shown(item, include, owner) for item in items]


def _shown(item: Shown, include: Collection[str], owner: str) -> Shown:
    if item["type"] == "message" and item["role"] == "assistant" and LOGPROBS not in include:
        content = [_without_logprobs(part) for part in item["content"]]
        return {**item, "content": content}
    if item["type"] == "reasoning" and ENCRYPTED_REASONING in include and not item.get("encrypted_content"):
        text = "".join(part["text"] for part in item.get("content") or ())
        return {**item, "encrypted_content": seal_reasoning(text, owner=owner)} if text else item
    return item


def _without_logprobs(part: OutputText | Refusal) -> OutputText | Refusal:
    return {**part, "logprobs": []} if part["type"] == "output_text" and part.get("logprobs") else part
