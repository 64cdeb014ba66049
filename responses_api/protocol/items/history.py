"""Converts a request's input to items in wire form, and stored items to those that a chat template reads.

There is one rendering path: the input of a request, a chain of stored turns and a client's replay of that chain all
become the same list of items first, so equivalent spellings render, and count, alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from responses_api.ids import Prefix
from responses_api.protocol.items.calls import CompactionTrigger, ItemReference
from responses_api.protocol.items.hosted import HOSTED_TYPES
from responses_api.protocol.items.input import InputItem, InputMessage, item_prefix

SUMMARY_HEADING = "Summary of the conversation before this point:"


class HasInput(Protocol):
    """A request with an input: to be answered, counted or compacted."""

    @property
    def input(self) -> str | tuple[InputItem, ...]: ...


def input_items(request: HasInput, *, new_id: Callable[[Prefix], str] | None = None) -> list[dict[str, Any]]:
    """The request's own input as `input_items` lists it, oldest first.

    The client's ids are kept, except for a second use of an id within the request. Items without an id get one from
    `new_id`; without `new_id` they stay without. References stay as they are, `{"type": "item_reference", "id": …}`; a
    compaction trigger is not an item.
    """
    items = (InputMessage(role="user", content=request.input),) if isinstance(request.input, str) else request.input
    taken: set[str] = set()
    listed = []
    for item in items:
        wire, item_id = item.wire(), item.id
        if isinstance(item, CompactionTrigger):
            continue
        if isinstance(item, ItemReference):
            listed.append(wire)
            continue
        if item_id is None or item_id in taken:
            item_id = new_id(item_prefix(item.type)) if new_id is not None else None
        if item_id is not None:
            taken.add(item_id)
            wire = {"id": item_id, **wire}
        listed.append(wire)
    return listed


def sent_ids(request: HasInput) -> list[str]:
    """The ids that the client gave to its items."""
    return [] if isinstance(request.input, str) else [item.id for item in request.input if item.id is not None]


def shown_items(items: Iterable[Mapping[str, Any]], instructions: str | None = None) -> list[Mapping[str, Any]]:
    """The items for a chat template, oldest first.

    Instructions come first, as the system's; a summary is the system's, too. The items of hosted tools are left out.
    References are resolved and compaction items expanded before.
    """
    shown: list[Mapping[str, Any]] = [_system_message(instructions)] if instructions else []
    for item in items:
        if item["type"] == "summary":
            shown.append(_system_message(f"{SUMMARY_HEADING}\n{item['text']}"))
        elif item["type"] not in HOSTED_TYPES:
            shown.append(item)
    return shown


def _system_message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "system", "content": [{"type": "input_text", "text": text}]}
