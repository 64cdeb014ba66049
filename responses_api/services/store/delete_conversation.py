"""Deletes conversations with the items that only they refer to; the histories of responses stay."""

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
    """Delete a conversation. Running responses that continue it end normally, without adding a turn to it."""
    row = get_conversation(caller=caller, conversation_id=conversation_id)
    if not remove_conversations(Conversation.objects.filter(pk=row.pk)):
        raise conversation_not_found(conversation_id)


def idle_conversations() -> QuerySet[Conversation]:
    """Conversations that no running response continues, so that no turn is about to be added."""
    running = Response.objects.filter(conversation=OuterRef("pk"), status__in=ACTIVE)
    return Conversation.objects.filter(~Exists(running))


def expired_conversations() -> QuerySet[Conversation]:
    """Idle conversations that have expired."""
    return idle_conversations().filter(expires_at__lte=Now())


def remove_conversations(rows: QuerySet[Conversation], *, skip_locked: bool = False) -> int:
    """Remove these conversations and the items that only they refer to. Returns the number of conversations removed.

    In one transaction, so that a crash leaves all or nothing. With ``skip_locked``, conversations that another
    transaction is changing stay.
    """
    with transaction.atomic(savepoint=False):
        # The turns are not joined: after waiting for a lock, PostgreSQL would join those from before the wait.
        conversations = list(rows.select_for_update(skip_locked=skip_locked, of=("self",)).order_by("pk"))
        if not conversations:
            return 0
        turns = Turn.objects.in_bulk({row.turn_id for row in conversations if row.turn_id is not None})
        changes: defaultdict[int, StoreChange] = defaultdict(StoreChange)
        for row in conversations:
            items = history_bytes(turns[row.turn_id] if row.turn_id is not None else None)
            change = changes[row.project_id]
            change.conversations -= 1
            change.conversation_bytes -= items + metadata_bytes(row)
            # Its items count as the responses' from now on; those that no response has are subtracted below.
            change.response_bytes += items
        for batch in batches([row.pk for row in conversations]):
            Conversation.objects.filter(pk__in=batch).delete()
        for project_id, freed in sweep_turns(turns).items():
            changes[project_id].response_bytes -= freed
        record_changes(changes)
    return len(conversations)
