"""Finds stored items by their public ids."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.db import connection
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from responses_api.caller import Caller
from responses_api.models import Conversation, Item, Response, TurnItem
from responses_api.models.store.response import ACTIVE

from .batches import batches


@dataclass(frozen=True, slots=True)
class StoredItem:
    """The primary key of a stored item and its bytes, by which to decide whether to load it."""

    key: int
    size: int


def find_items(*, caller: Caller, wire_ids: Collection[str]) -> dict[str, StoredItem]:
    """The caller's stored items with these ids. Clients choose some ids: of several items with one, the newest counts.

    Items that only background jobs with `store: false` have can be retrieved for a while, but not referenced. Items
    that only expired responses and conversations have are left out too, even before the sweep removes them.
    """
    items: dict[str, StoredItem] = {}
    for ids in batches(sorted(set(wire_ids))):
        rows = list(
            Item.objects.filter(project=caller.project, wire_id__in=ids)
            .order_by("pk")
            .values_list("pk", "wire_id", "size")
        )
        keys = [key for key, _, _ in rows]
        if settings.RESPONSES_ISOLATION == "key":
            usable = in_own_histories(
                keys, owner="key_id IS NULL" if caller.key is None else f"key_id = {caller.key.pk:d}"
            )
        else:
            doubtful = keys
            if keys and not has_expired_entries(caller):
                unstored = Response.objects.filter(store=False, turn=OuterRef("turn"))
                temporary = TurnItem.objects.filter(Exists(unstored), item__in=keys).values_list("item", flat=True)
                doubtful = sorted(set(temporary))
            usable = set(keys).difference(doubtful)
            usable |= in_own_histories(doubtful, owner=f"project_id = {caller.project.pk:d}")
        items |= {wire_id: StoredItem(key, size) for key, wire_id, size in rows if key in usable}
    return items


def has_expired_entries(caller: Caller) -> bool:
    """Whether the project has expired responses or conversations that are not swept yet."""
    expired = {"project": caller.project, "expires_at__lte": Now()}
    return Response.objects.filter(**expired).exists() or Conversation.objects.filter(**expired).exists()


# An item belongs to no key: the owner of a response or a conversation may see the items of its history.
IN_OWN_HISTORIES = """
    WITH RECURSIVE holding(item_id, turn_id) AS (
        SELECT item_id, turn_id FROM responses_api_turnitem WHERE item_id IN ({items})
        UNION
        SELECT holding.item_id, child.id FROM holding JOIN responses_api_turn child ON child.parent_id = holding.turn_id
    )
    SELECT DISTINCT item_id FROM holding
    WHERE EXISTS (
        SELECT 1 FROM responses_api_response own
        WHERE own.turn_id = holding.turn_id AND own.store AND own.{owner}
        AND (own.expires_at IS NULL OR own.expires_at > {now})
    )
    OR EXISTS (
        SELECT 1 FROM responses_api_conversation own WHERE own.turn_id = holding.turn_id AND own.{owner}
        AND (
            own.expires_at IS NULL OR own.expires_at > {now} OR EXISTS (
                SELECT 1 FROM responses_api_response job WHERE job.conversation_id = own.id AND job.status IN ({active})
            )
        )
    )
"""
NOW = {"postgresql": "STATEMENT_TIMESTAMP()", "sqlite": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW')"}
"""The database's clock, in the form in which it stores dates (as Django's ``Now``)."""


def in_own_histories(items: Sequence[int], *, owner: str) -> set[int]:
    """The items in the histories of stored responses and conversations that meet the SQL condition ``owner``."""
    owned: set[int] = set()
    active = ", ".join(f"'{status}'" for status in sorted(ACTIVE))
    with connection.cursor() as cursor:
        for batch in batches(items):
            statement = IN_OWN_HISTORIES.format(
                items=", ".join(["%s"] * len(batch)), owner=owner, now=NOW[connection.vendor], active=active
            )
            cursor.execute(statement, batch)
            owned |= {item for (item,) in cursor.fetchall()}
    return owned
