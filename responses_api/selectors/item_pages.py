"""Pages of histories, limited in items by the client and in bytes by the server.

A page that would be too large ends early with ``has_more``; it has at least one item.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import connection

from responses_api.errors import InvalidValue
from responses_api.protocol import ListQuery, item_list
from responses_api.protocol.objects import Item, ItemList

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
"""The start of a list: before all turns, or after them."""
NO_TURN = -1


@dataclass(frozen=True, slots=True)
class Place:
    """An item on a page: the primary key of a stored item, or an item that is not stored yet."""

    size: int
    key: int = 0
    item: Item | None = None


def history_places(
    turn_id: int | None, *, query: ListQuery, after: str | None, limit: int, without_output_of: int | None = None
) -> list[Place]:
    """The places of up to ``limit`` items of a turn's history that follow the item ``after`` in the list's order.

    Raises an :class:`InvalidValue` when the history has no such item. The items are not loaded.
    """
    if turn_id is None:
        if after is not None:
            raise not_in_list(after)
        return []
    excluded = NO_TURN if without_output_of is None else without_output_of
    with connection.cursor() as cursor:
        start = ENDS[query.order]
        if after is not None:
            cursor.execute(
                f"{ANCESTRY} SELECT ancestry.depth, entry.position {FROM_HISTORY} AND item.wire_id = %s LIMIT 1",
                [turn_id, excluded, after],
            )
            place = cursor.fetchone()
            if place is None:
                raise not_in_list(after)
            start = place
        cursor.execute(
            f"{ANCESTRY} SELECT item.id, item.size {FROM_HISTORY} {PLACES[query.order]}",
            [turn_id, excluded, *start, limit],
        )
        return [Place(size, key) for key, size in cursor.fetchall()]


def item_page(places: Sequence[Place], *, query: ListQuery, take: Take) -> ItemList:
    """The page of the first of these places; the caller passes one more than the page's limit if there are more.

    ``take`` gets the bytes before the items are loaded, and raises when there is no room for them.
    """
    page = first_places(places, limit=query.limit)
    take(sum(place.size for place in page))
    stored = iter(items_by_key([place.key for place in page if place.item is None]))
    items = [next(stored) if place.item is None else place.item for place in page]
    return item_list(items, has_more=len(places) > len(page))


def first_places(places: Sequence[Place], *, limit: int) -> list[Place]:
    """The first places that fit on a page: at most ``limit``, with at most ``PAGE_BYTES`` beyond the first."""
    size = 0
    for number, place in enumerate(places[:limit]):
        size += place.size
        if number and size > PAGE_BYTES:
            return list(places[:number])
    return list(places[:limit])


def unbounded(size: int) -> None:
    """A ``take`` without a limit, for items that have been accounted for."""


def not_in_list(after: str) -> InvalidValue:
    """The 400 for a cursor that is not in the list."""
    return InvalidValue(
        f"`after` names the item '{after}', which is not in this list. Send the `last_id` of the page before.",
        param="after",
    )
