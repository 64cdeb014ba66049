"""Stored items by the ids that clients know."""

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
    """Where a stored item is, by its primary key, and its bytes: enough to decide whether to load it."""

    key: int
    size: int


def find_items(*, caller: Caller, wire_ids: Collection[str]) -> dict[str, StoredItem]:
    """The caller's stored items with these ids. Clients make some ids, so one may name several: the newest counts.

    What only background jobs with `store: false` have is there to be retrieved for a while, and not to be used again.
    What only expired responses and conversations have may still be there, until it is swept.
    """
    found: dict[str, StoredItem] = {}
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
            suspects = keys
            if keys and not something_expired(caller):
                unstored = Response.objects.filter(store=False, turn=OuterRef("turn"))
                passing = TurnItem.objects.filter(Exists(unstored), item__in=keys).values_list("item", flat=True)
                suspects = sorted(set(passing))
            usable = set(keys).difference(suspects)
            usable |= in_own_histories(suspects, owner=f"project_id = {caller.project.pk:d}")
        found |= {wire_id: StoredItem(key, size) for key, wire_id, size in rows if key in usable}
    return found


def something_expired(caller: Caller) -> bool:
    """Whether the project has anything whose time is over and that is not swept yet."""
    over = {"project": caller.project, "expires_at__lte": Now()}
    return Response.objects.filter(**over).exists() or Conversation.objects.filter(**over).exists()


# An item has no key: whoever has a response or a conversation whose history it is in may see it.
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
"""The database's clock, in the form in which it keeps dates (as Django's ``Now``)."""


def in_own_histories(items: Sequence[int], *, owner: str) -> set[int]:
    """Those of these items that stored responses and conversations have in their histories, of whom ``owner`` says."""
    found: set[int] = set()
    active = ", ".join(f"'{status}'" for status in sorted(ACTIVE))
    with connection.cursor() as cursor:
        for some in batches(items):
            statement = IN_OWN_HISTORIES.format(
                items=", ".join(["%s"] * len(some)), owner=owner, now=NOW[connection.vendor], active=active
            )
            cursor.execute(statement, some)
            found |= {item for (item,) in cursor.fetchall()}
    return found
