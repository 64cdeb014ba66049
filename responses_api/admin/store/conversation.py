"""A response's history as rows, limited in number and size: the newest items are read, only small ones completely."""

from dataclasses import dataclass

from django.db import connection

from responses_api.selectors.history import ANCESTRY

SHOWN_ITEMS = 200
WHOLE = 200_000
"""Longest payload that is read completely, in characters; of longer ones, only the head is read."""
HEAD = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An item in a history."""

    item: int
    type: str
    payload: str
    """JSON text; only its head when ``size`` is more than :data:`WHOLE`."""
    size: int
    own: bool
    """Whether it is part of the response's own turn, not of an earlier one."""
    is_output: bool

    @property
    def whole(self) -> bool:
        """Whether ``payload`` is the whole payload."""
        return self.size <= WHOLE


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The end of a history, oldest first, and the number of items before it."""

    places: list[Place]
    hidden: int


def read_history(turn_id: int | None, *, own_turn: bool, limit: int = SHOWN_ITEMS) -> History:
    """The last items of a turn's history, by two queries. ``own_turn``: it is the response's turn, not its parent's."""
    if turn_id is None:
        return History(places=[], hidden=0)
    joined = " FROM ancestry JOIN responses_api_turnitem entry ON entry.turn_id = ancestry.id"
    with connection.cursor() as cursor:
        cursor.execute(ANCESTRY + "SELECT COUNT(*)" + joined, [turn_id])
        (total,) = cursor.fetchone()
        cursor.execute(
            ANCESTRY
            + """
            SELECT item.id, item.type,
                CASE WHEN LENGTH(item.payload) <= %s THEN item.payload ELSE SUBSTR(item.payload, 1, %s) END,
                LENGTH(item.payload), entry.turn_id, entry.is_output
            """
            + joined
            + """
            JOIN responses_api_item item ON item.id = entry.item_id
            ORDER BY ancestry.depth DESC, entry.position DESC LIMIT %s
            """,
            [turn_id, WHOLE, HEAD, limit],
        )
        places = [
            Place(
                item=item,
                type=type_,
                payload=payload,
                size=size,
                own=own_turn and turn == turn_id,
                is_output=bool(is_output),
            )
            for item, type_, payload, size, turn, is_output in cursor.fetchall()
        ]
    places.reverse()
    return History(places=places, hidden=max(0, total - len(places)))
