"""Changes the attributes of a conversation."""

from django.db import transaction
from django.db.models.functions import Now

from responses_api.caller import Caller
from responses_api.models import Conversation, StoreChange
from responses_api.protocol.requests.conversations import UpdateConversation
from responses_api.selectors.conversations import conversation_not_found, get_conversation

from .make_room import make_room_for_conversations
from .move_conversation import lock_conversation, metadata_bytes
from .store_changes import record_change


def edit_conversation(*, caller: Caller, conversation_id: str, request: UpdateConversation) -> Conversation:
    """Replace a conversation's metadata."""
    conversation = get_conversation(caller=caller, conversation_id=conversation_id)
    with transaction.atomic():
        row = lock_conversation(conversation.pk)
        if row is None:
            raise conversation_not_found(conversation_id)
        before = metadata_bytes(row)
        row.metadata = dict(request.metadata)
        row.used_at = Now()
        row.save(update_fields=["metadata", "used_at"])
        record_change(StoreChange(project_id=row.project_id, conversation_bytes=metadata_bytes(row) - before))
        evicted = make_room_for_conversations()
    evicted.count()
    return row
