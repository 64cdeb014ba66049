"""Deleting stored responses, and sweeping what nobody reaches any more."""

from collections.abc import Iterable

from django.db import IntegrityError, connection, transaction
from django.db.models import Exists, OuterRef, QuerySet

from responses_api.caller import Caller
from responses_api.errors import NotFound, ResponseInProgress
from responses_api.models import Checkpoint, Conversation, EventBatch, Response, StoreChange, Turn, TurnItem
from responses_api.models.response import ACTIVE
from responses_api.selectors.batches import batches
from responses_api.selectors.responses import find_response

from .store_changes import record_change


def delete_response(*, caller: Caller, response_id: str) -> None:
    """Delete a stored response. Responses that continue it keep their history."""
    row = find_response(caller, response_id)
    if row is None:
        raise NotFound.response(response_id)
    if row.is_active:
        raise ResponseInProgress.for_status(response_id, row.status)
    remove_responses([row])


def remove_responses(rows: Iterable[Response]) -> int:
    """Remove ended responses and what only they held. Returns how many were removed."""
    return sum(remove_response(row.pk) is not None for row in rows)


def remove_response(pk: int) -> int | None:
    """Remove an ended response and what only it held. Returns the bytes freed, or ``None`` when it was not there."""
    with transaction.atomic():
        ended = Response.objects.select_for_update().exclude(status__in=ACTIVE)
        row = ended.filter(pk=pk).only("project_id", "turn_id", "size").first()
        if row is None:
            return None
        EventBatch.objects.filter(response=pk).delete()
        Checkpoint.objects.filter(response=pk).delete()
        Response.objects.filter(pk=pk).delete()
        record_change(StoreChange(project_id=row.project_id, responses=-1, response_bytes=-row.size))
    return int(row.size) + sweep_turn(row.turn_id)


def sweep_turn(turn_id: int | None) -> int:
    """Remove a turn that nothing reaches, then its parent if that made it unreachable, and so on to the root.

    A turn that is referred to again meanwhile stays: the database refuses, and the sweep ends there. Returns the bytes
    of the items that went.
    """
    freed = 0
    while turn_id is not None:
        try:
            with transaction.atomic():
                turn = unreachable_turns().select_for_update(of=("self",)).filter(pk=turn_id).first()
                if turn is None:
                    return freed
                items = list(TurnItem.objects.filter(turn=turn).values_list("item_id", flat=True))
                TurnItem.objects.filter(turn=turn).delete()
                turn.delete()
                size = remove_unheld(items)
                record_change(StoreChange(project_id=turn.project_id, response_bytes=-size))
        except IntegrityError:
            return freed
        freed += size
        turn_id = turn.parent_id
    return freed


REMOVE_UNHELD = """
    DELETE FROM responses_api_item WHERE id IN ({items})
    AND NOT EXISTS (SELECT 1 FROM responses_api_turnitem entry WHERE entry.item_id = responses_api_item.id)
    RETURNING size
"""


def remove_unheld(items: list[int]) -> int:
    """Remove those of the items that no turn holds; returns their bytes."""
    size = 0
    with connection.cursor() as cursor:
        for some in batches(items):
            cursor.execute(REMOVE_UNHELD.format(items=", ".join(["%s"] * len(some))), some)
            size += sum(octets for (octets,) in cursor.fetchall())
    return size


def unreachable_turns() -> QuerySet[Turn]:
    """Turns that nothing refers to: no later turn, no response as its own, no conversation, no running job."""
    return Turn.objects.filter(
        ~Exists(Turn.objects.filter(parent=OuterRef("pk"))),
        ~Exists(Response.objects.filter(turn=OuterRef("pk"))),
        ~Exists(Response.objects.filter(parent=OuterRef("pk"))),
        ~Exists(Conversation.objects.filter(turn=OuterRef("pk"))),
    )
