"""Histories: a turn and its ancestors, read by one recursive query of any length."""

from collections.abc import Sequence

from django.db import connection

from responses_api.models import Item
from responses_api.protocol import objects
from responses_api.protocol.json.reader import read_stored

from .batches import batches

# A step is a scalar subquery, which is one index look-up: for a join, PostgreSQL may scan the table at each step until
# it has statistics.
ANCESTRY = """
    WITH RECURSIVE ancestry(id, parent_id, depth) AS (
        SELECT id, parent_id, depth FROM responses_api_turn WHERE id = %s
        UNION ALL
        SELECT parent_id, (SELECT above.parent_id FROM responses_api_turn above WHERE above.id = ancestry.parent_id),
            depth - 1
        FROM ancestry WHERE parent_id IS NOT NULL
    )
"""


def history_size(turn_id: int | None) -> int:
    """The bytes of all items of a turn's history, the turn's own included."""
    if turn_id is None:
        return 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT history_bytes FROM responses_api_turn WHERE id = %s", [turn_id])
        row = cursor.fetchone()
        return 0 if row is None else int(row[0])


def history_items(turn_id: int | None) -> list[objects.Item]:
    """All items of a turn's history, oldest first, the turn's own included."""
    return [read_stored(payload) for payload in history_payloads(turn_id)]


def history_payloads(turn_id: int | None) -> list[str]:
    """All items of a turn's history as JSON texts, oldest first."""
    if turn_id is None:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            ANCESTRY
            + """
            SELECT item.payload FROM ancestry
            JOIN responses_api_turnitem entry ON entry.turn_id = ancestry.id
            JOIN responses_api_item item ON item.id = entry.item_id
            ORDER BY ancestry.depth, entry.position
            """,
            [turn_id],
        )
        return [payload for (payload,) in cursor.fetchall()]


def used_ids(turn_id: int | None, wire_ids: Sequence[str]) -> set[str]:
    """The ids among these that a turn's history uses."""
    if turn_id is None:
        return set()
    used: set[str] = set()
    with connection.cursor() as cursor:
        for batch in batches(wire_ids):
            cursor.execute(
                ANCESTRY
                + f"""
                SELECT item.wire_id FROM ancestry
                JOIN responses_api_turnitem entry ON entry.turn_id = ancestry.id
                JOIN responses_api_item item ON item.id = entry.item_id
                WHERE item.wire_id IN ({", ".join(["%s"] * len(batch))})
                """,
                [turn_id, *batch],
            )
            used |= {wire_id for (wire_id,) in cursor.fetchall()}
    return used


def items_by_key(keys: list[int]) -> list[objects.Item]:
    """The items with these primary keys, in this order."""
    items = Item.objects.in_bulk(keys)
    return [items[key].wire() for key in keys]


def output_items(turn_id: int | None) -> list[objects.OutputItem]:
    """The items that a turn's request generated, in order."""
    if turn_id is None:
        return []
    payloads = (
        Item.objects.filter(entries__turn_id=turn_id, entries__is_output=True)
        .order_by("entries__position")
        .values_list("payload", flat=True)
    )
    return [read_stored(payload) for payload in payloads]
