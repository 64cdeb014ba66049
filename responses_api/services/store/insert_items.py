"""Inserts the items of turns by a few statements, without a model instance for each.

A request may have 20,000 items, and SQLite blocks all other writers until the transaction ends, heartbeats included.
"""

from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection
from django.utils import timezone

from responses_api.models import Item, TurnItem
from responses_api.protocol import objects
from responses_api.protocol.json.writer import write_json

ITEM_COLUMNS = "project_id, wire_id, type, payload, created_at"
ENTRY_COLUMNS = "turn_id, item_id, position, is_output"


class NewItem(NamedTuple):
    """An item to insert. ``size`` is that of the payload, in bytes."""

    wire_id: str
    type: str
    payload: str
    size: int


class NewEntry(NamedTuple):
    """An item's place in a turn, to insert."""

    turn: int
    item: int
    position: int
    is_output: bool


def new_item(payload: objects.Item) -> NewItem:
    """The row of an item in wire form."""
    text = write_json(payload)
    return NewItem(payload["id"], payload["type"], text.decode(), len(text))


def insert_items(items: Sequence[NewItem], *, project_id: int) -> list[int]:
    """Insert items within the caller's transaction; returns their primary keys, in the same order."""
    if not items:
        return []
    table, now = Item._meta.db_table, connection.ops.adapt_datetimefield_value(timezone.now())
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            wire_ids, types, payloads, _ = map(list, zip(*items, strict=True))
            # One parameter per text: in an array parameter, psycopg would escape each quote by a Python call.
            texts = f"ARRAY[{', '.join(['%s'] * len(items))}]::text[]"
            cursor.execute(
                f"INSERT INTO {table} ({ITEM_COLUMNS}) SELECT %s, wire_id, type, payload, %s "
                f"FROM unnest({texts}, {texts}, {texts}) WITH ORDINALITY AS new(wire_id, type, payload, place) "
                "ORDER BY place RETURNING id",
                [project_id, now, *wire_ids, *types, *payloads],
            )
            return sorted(key for (key,) in cursor.fetchall())
        cursor.executemany(
            f"INSERT INTO {table} ({ITEM_COLUMNS}) VALUES (%s, %s, %s, %s, %s)",
            [(project_id, wire_id, kind, payload, now) for wire_id, kind, payload, _ in items],
        )
        # The transaction is the only writer, and keys increase by one.
        cursor.execute("SELECT last_insert_rowid()")
        (last,) = cursor.fetchone()
        return list(range(last - len(items) + 1, last + 1))


def insert_entries(entries: Sequence[NewEntry]) -> None:
    """Insert the places of items in turns."""
    if not entries:
        return
    table = TurnItem._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(
                f"INSERT INTO {table} ({ENTRY_COLUMNS}) "
                "SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::integer[], %s::boolean[])",
                list(map(list, zip(*entries, strict=True))),
            )
        else:
            cursor.executemany(f"INSERT INTO {table} ({ENTRY_COLUMNS}) VALUES (%s, %s, %s, %s)", entries)
