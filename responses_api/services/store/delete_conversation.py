"""Deleting conversations with what only they held; responses keep their histories."""

from collections import defaultdict

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now

from responses_api.caller import Caller
from responses_api.models import Conversation, Response, StoreChange, Turn
from responses_api.models.store.response import ACTIVE
from responses_api.selectors.batches import batches
from responses_api.selectors.conversations import conversation_not_found, get_conversation

from .move_conversation import history_bytes, metadata_bytes
from .store_changes import record_changes
from .sweep_turns import sweep_turns


def delete_conversation(*, caller: Caller, conversation_id: str) -> None:
    """Delete a conversation. Responses that run on it end as they would, and add their turn to nothing."""
    row = get_conversation(caller=caller, conversation_id=conversation_id)
    if not remove_conversations(Conversation.objects.filter(pk=row.pk)):
        raise conversation_not_found(conversation_id)


def idle_conversations() -> QuerySet[Conversation]:
    """Conversations that no running response continues: one that does will put its turn there."""
    running = Response.objects.filter(conversation=OuterRef("pk"), status__in=ACTIVE)
    return Conversation.objects.filter(~Exists(running))


def expired_conversations() -> QuerySet[Conversation]:
    """Idle ones whose time is over."""
    return idle_conversations().filter(expires_at__lte=Now())


def remove_conversations(rows: QuerySet[Conversation], *, skip_locked: bool = False) -> int:
    """Remove these conversations and what only they held. Returns how many there were.

    One transaction: a crash leaves all or nothing of it. With ``skip_locked``, those that somebody changes at this
    moment stay.
    """
    with transaction.atomic(savepoint=False):
        # The turns are not joined: where the lock had to be waited for, PostgreSQL would join those of before.
        found = list(rows.select_for_update(skip_locked=skip_locked, of=("self",)).order_by("pk"))
        if not found:
            return 0
        turns = Turn.objects.in_bulk({row.turn_id for row in found if row.turn_id is not None})
        changes: defaultdict[int, StoreChange] = defaultdict(StoreChange)
        for row in found:
            items = history_bytes(turns[row.turn_id] if row.turn_id is not None else None)
            change = changes[row.project_id]
            change.conversations -= 1
            change.conversation_bytes -= items + metadata_bytes(row)
            # What responses still hold of its items is theirs alone from now on.
            change.response_bytes += items
        for some in batches([row.pk for row in found]):
            Conversation.objects.filter(pk__in=some).delete()
        for project_id, freed in sweep_turns(turns).items():
            changes[project_id].response_bytes -= freed
        record_changes(changes)
    return len(found)
