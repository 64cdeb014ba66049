"""The items of a request's input, as they are stored and listed."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from responses_api.ids import derived_id
from responses_api.protocol.items.history import HasInput, input_items
from responses_api.protocol.items.input import item_prefix
from responses_api.protocol.objects.items import Item


def sent_items(request: HasInput, *, response_id: str, used: Collection[str]) -> list[Item]:
    """The request's own input with an id for each item: a client's own, unless the history has ``used`` it.

    The others are derived from the response's id, so that they are the same every time. References were resolved
    before.
    """
    used = set(used)
    result = []
    for index, item in enumerate(input_items(request)):
        item_id = item.get("id")
        if item_id is None or item_id in used:
            item_id = derived_id(item_prefix(item["type"]), f"{response_id}.input", index)
        used.add(item_id)
        result.append(cast("Item", {"id": item_id, **{key: value for key, value in item.items() if key != "id"}}))
    return result
