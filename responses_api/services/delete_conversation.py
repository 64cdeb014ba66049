"""Deleting conversations with what only they held; responses keep their histories."""

from collections.abc import Iterable

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now

from responses_api.caller import Caller
from responses_api.models import Conversation, Response, StoreChange
from responses_api.models.response import ACTIVE
from responses_api.selectors.conversations import conversation_not_found, get_conversation

from .delete_response import sweep_turn
from .move_conversation import history_bytes, metadata_bytes
from .store_changes import record_change


def delete_conversation(*, caller: Caller, conversation_id: str) -> None:
    """Delete a conversation. Responses that run on it end as they would, and add their turn to nothing."""
    row = get_conversation(caller=caller, conversation_id=conversation_id)
    if not remove_conversations([row.pk]):
        raise conversation_not_found(conversation_id)


def idle_conversations() -> QuerySet[Conversation]:
    """Conversations that no running response continues: one that does will put its turn there."""
    running = Response.objects.filter(conversation=OuterRef("pk"), status__in=ACTIVE)
    return Conversation.objects.filter(~Exists(running))


def remove_conversations(keys: Iterable[int], *, expired: bool = False) -> int:
    """Remove conversations and what only they held, or of them only the ``expired``. Returns how many were removed."""
    wanted = idle_conversations().filter(expires_at__lte=Now()) if expired else Conversation.objects.all()
    return sum(remove_conversation(pk, among=wanted) is not None for pk in keys)


def remove_conversation(pk: int, *, among: QuerySet[Conversation]) -> int | None:
    """Remove a conversation and what only it held. Returns its bytes, or ``None`` when it was not ``among`` these."""
    with transaction.atomic():
        row = among.select_for_update().filter(pk=pk).first()
        if row is None:
            return None
        items = history_bytes(row.turn)
        size = items + metadata_bytes(row)
        row.delete()
        # What responses still hold of its items is theirs alone from now on.
        record_change(
            StoreChange(project_id=row.project_id, conversations=-1, conversation_bytes=-size, response_bytes=items)
        )
    sweep_turn(row.turn_id)
    return size
