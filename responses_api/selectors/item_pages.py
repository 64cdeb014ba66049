"""Pages of histories: bounded in items as the client asks, and in bytes, so that no list loads what it can't answer.

A page that would be too large ends early and says that there is more; it has one item at least.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from responses_api.errors import InvalidValue
from responses_api.protocol import ListQuery, item_list
from responses_api.protocol.objects import ItemList

from .history import ANCESTRY, items_by_key

Take = Callable[[int], None]

PAGE_BYTES = 8 << 20

FROM_HISTORY = """
    FROM ancestry
    JOIN responses_api_turnitem entry ON entry.turn_id = ancestry.id
    JOIN responses_api_item item ON item.id = entry.item_id
    WHERE NOT (entry.turn_id = %s AND entry.is_output)
"""
PLACES = {
    "asc": """
        AND (ancestry.depth, entry.position) > (%s, %s)
        ORDER BY ancestry.depth, entry.position LIMIT %s
    """,
    "desc": """
        AND (ancestry.depth, entry.position) < (%s, %s)
        ORDER BY ancestry.depth DESC, entry.position DESC LIMIT %s
    """,
}
ENDS = {"asc": (-1, -1), "desc": (1 << 31, 1 << 31)}
"""Where a list begins: before all turns, or after them."""
NO_TURN = -1


@dataclass(frozen=True, slots=True)
class Place:
    """An item on a page: of a stored one its primary key, of one that is not stored yet the item itself."""

    size: int
    key: int = 0
    item: dict[str, Any] | None = None


def history_places(
    turn_id: int | None, *, query: ListQuery, after: str | None, limit: int, without_output_of: int | None = None
) -> list[Place]:
    """The places of up to ``limit`` items of a turn's history that follow the item ``after`` in the list's order.

    Raises an :class:`InvalidValue` when the history has no such item. Nothing of the items is loaded.
    """
    if turn_id is None:
        if after is not None:
            raise not_in_list(after)
        return []
    left_out = NO_TURN if without_output_of is None else without_output_of
    with connection.cursor() as cursor:
        begin = ENDS[query.order]
        if after is not None:
            cursor.execute(
                f"{ANCESTRY} SELECT ancestry.depth, entry.position {FROM_HISTORY} AND item.wire_id = %s LIMIT 1",
                [turn_id, left_out, after],
            )
            found = cursor.fetchone()
            if found is None:
                raise not_in_list(after)
            begin = found
        cursor.execute(
            f"{ANCESTRY} SELECT item.id, item.size {FROM_HISTORY} {PLACES[query.order]}",
            [turn_id, left_out, *begin, limit],
        )
        return [Place(size, key) for key, size in cursor.fetchall()]


def item_page(places: Sequence[Place], *, query: ListQuery, take: Take) -> ItemList:
    """The list of the first of these places, of which there is one more than were asked for if there are more.

    ``take`` is told of the bytes before the items are loaded, and raises when there is no room for them.
    """
    kept = first_places(places, limit=query.limit)
    take(sum(place.size for place in kept))
    stored = iter(items_by_key([place.key for place in kept if place.item is None]))
    items = [next(stored) if place.item is None else place.item for place in kept]
    return item_list(items, has_more=len(places) > len(kept))


def first_places(places: Sequence[Place], *, limit: int) -> list[Place]:
    """Those that one page has of these: no more than ``limit``, nor than it may have bytes."""
    size = 0
    for number, place in enumerate(places[:limit]):
        size += place.size
        if number and size > PAGE_BYTES:
            return list(places[:number])
    return list(places[:limit])


def unbounded(size: int) -> None:
    """Of a caller who has counted already."""


def not_in_list(after: str) -> InvalidValue:
    """The 400 for a cursor that is none."""
    return InvalidValue(
        f"`after` names the item '{after}', which is not in this list. Send the `last_id` of the page before.",
        param="after",
    )
