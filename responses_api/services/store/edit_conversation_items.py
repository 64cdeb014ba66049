"""Adds items to a conversation, and deletes one."""

from django.db import transaction

from responses_api.caller import Caller
from responses_api.models import Conversation, StoreChange, TurnItem
from responses_api.protocol import objects
from responses_api.protocol.requests.conversations import CreateItems, added_items
from responses_api.selectors.conversations import (
    conversation_not_found,
    find_place,
    get_conversation,
    item_not_found,
    places_above,
)
from responses_api.services.prompts.blobs import check_blobs

from .make_room import make_room_for_conversations
from .move_conversation import lock_conversation, move_conversation
from .store_changes import record_change
from .sweep_turns import sweep_turns
from .turns import refer_turns, with_free_ids, write_turn


def add_conversation_items(*, caller: Caller, conversation_id: str, request: CreateItems) -> list[objects.Item]:
    """Add items as one turn; returns them with their ids."""
    row = get_conversation(caller=caller, conversation_id=conversation_id)
    if not request.items:
        return []
    items = added_items(request.items)
    check_blobs(items, owner=caller.scope, field="items")
    with transaction.atomic():
        conversation = locked(row)
        tip = conversation.turn
        payloads = with_free_ids([(item, False) for item in items], parent=tip)
        change = StoreChange(project_id=conversation.project_id)
        move_conversation(conversation, write_turn(parent=tip, payloads=payloads, change=change), change=change)
        record_change(change)
        evicted = make_room_for_conversations()
    evicted.count()
    return [payload for payload, _ in payloads]


def delete_conversation_item(*, caller: Caller, conversation_id: str, item_id: str) -> Conversation:
    """Delete an item from a conversation; returns the conversation.

    The item's turn and those after it are copied without it, by reference to the same items, and the conversation moves
    to the last copy. The turns of responses stay as they are: their histories don't change.
    """
    row = get_conversation(caller=caller, conversation_id=conversation_id)
    with transaction.atomic():
        conversation = locked(row)
        place = find_place(conversation.turn_id, item_id)
        if place is None or conversation.turn_id is None:
            raise item_not_found(item_id)
        entry = TurnItem.objects.select_related("turn__parent").get(pk=place[0])
        places = places_above(conversation.turn_id, below=entry.turn.parent_id)
        remaining = [place for place in places if place.entry != entry.pk]
        tip = refer_turns(project_id=conversation.project_id, parent=entry.turn.parent, places=remaining)
        change = StoreChange(project_id=conversation.project_id)
        move_conversation(conversation, tip, change=change, renew=False)
        change.response_bytes -= sweep_turns([conversation.turn_id]).total()
        record_change(change)
    return conversation


def locked(conversation: Conversation) -> Conversation:
    """The conversation, locked. Raises :class:`NotFound` when it was deleted meanwhile."""
    row = lock_conversation(conversation.pk)
    if row is None:
        raise conversation_not_found(conversation.public_id)
    return row
