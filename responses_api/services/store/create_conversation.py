"""Creates conversations, empty or with their first items."""

from django.db import transaction
from django.db.models.functions import Now

from responses_api.caller import Caller
from responses_api.ids import new_id
from responses_api.models import Conversation, StoreChange
from responses_api.protocol.requests.conversations import CreateConversation, added_items
from responses_api.selectors.conversations import refuse_without_conversations
from responses_api.services.prompts.blobs import check_blobs

from .make_room import make_room_for_conversations
from .move_conversation import conversation_expiry, history_bytes, metadata_bytes
from .store_changes import record_change
from .turns import with_free_ids, write_turn


def create_conversation(*, caller: Caller, request: CreateConversation) -> Conversation:
    """Create a conversation; its first items are its first turn."""
    refuse_without_conversations()
    items = added_items(request.items)
    check_blobs(items, owner=caller.scope, field="items")
    payloads = with_free_ids([(item, False) for item in items], parent=None)
    change = StoreChange(project_id=caller.project.pk)
    with transaction.atomic():
        turn = write_turn(parent=None, payloads=payloads, change=change) if payloads else None
        row = Conversation.objects.create(
            public_id=new_id("conv_"),
            project=caller.project,
            key=caller.key,
            turn=turn,
            metadata=dict(request.metadata),
            created_at=Now(),
            used_at=Now(),
            expires_at=conversation_expiry(),
        )
        row.refresh_from_db(fields=["created_at"])
        change.conversations += 1
        change.conversation_bytes += history_bytes(turn) + metadata_bytes(row)
        change.response_bytes -= history_bytes(turn)
        record_change(change)
        evicted = make_room_for_conversations()
    evicted.count()
    return row
