"""Lists of items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from typing_extensions import TypedDict

from responses_api.protocol.objects.items import Item


class ItemList(TypedDict):
    """A page of items."""

    object: Literal["list"]
    data: list[Item]
    first_id: str | None
    last_id: str | None
    has_more: bool


def item_list(items: Sequence[Item], *, has_more: bool) -> ItemList:
    """One page, in the requested order. The ids of an empty page are null."""
    return {
        "object": "list",
        "data": list(items),
        "first_id": items[0]["id"] if items else None,
        "last_id": items[-1]["id"] if items else None,
        "has_more": has_more,
    }
