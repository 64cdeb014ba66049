"""Stored items by the ids that clients know."""

from collections.abc import Collection, Sequence
from typing import Any

from django.conf import settings
from django.db import connection

from responses_api.caller import Caller
from responses_api.models import Item

from .batches import batches


def find_items(*, caller: Caller, wire_ids: Collection[str]) -> dict[str, dict[str, Any]]:
    """The caller's stored items with these ids. Clients make some ids, so one may name several: the newest counts."""
    found: dict[str, dict[str, Any]] = {}
    for ids in batches(sorted(set(wire_ids))):
        rows = list(Item.objects.filter(project=caller.project, wire_id__in=ids).order_by("pk"))
        if settings.RESPONSES_ISOLATION == "key":
            own = keys_own_items(caller, [row.pk for row in rows])
            rows = [row for row in rows if row.pk in own]
        found |= {row.wire_id: row.wire() for row in rows}
    return found


# An item has no key: whoever has a response or a conversation whose history it is in may see it.
IN_OWN_HISTORIES = """
    WITH RECURSIVE holding(item_id, turn_id) AS (
        SELECT item_id, turn_id FROM responses_api_turnitem WHERE item_id IN ({items})
        UNION
        SELECT holding.item_id, child.id FROM holding JOIN responses_api_turn child ON child.parent_id = holding.turn_id
    )
    SELECT DISTINCT item_id FROM holding
    WHERE EXISTS (SELECT 1 FROM responses_api_response own WHERE own.turn_id = holding.turn_id AND own.{own})
    OR EXISTS (SELECT 1 FROM responses_api_conversation own WHERE own.turn_id = holding.turn_id AND own.{own})
"""


def keys_own_items(caller: Caller, items: Sequence[int]) -> set[int]:
    """Those of a project's items that the caller's key has in its own histories."""
    own = "key_id IS NULL" if caller.key is None else f"key_id = {caller.key.pk:d}"
    found: set[int] = set()
    with connection.cursor() as cursor:
        for some in batches(items):
            cursor.execute(IN_OWN_HISTORIES.format(items=", ".join(["%s"] * len(some)), own=own), some)
            found |= {item for (item,) in cursor.fetchall()}
    return found
