"""Moves a conversation's pointer: the only place where turns are added to a conversation."""

from datetime import timedelta
from typing import Any

import orjson
from django.conf import settings
from django.db.models.functions import Now

from responses_api.models import Conversation, Response, StoreChange, Turn
from responses_api.selectors.conversations import live_conversations

from .turns import Payloads, repeat_turn, with_free_ids, write_turn


def lock_conversation(pk: int) -> Conversation | None:
    """The conversation, locked until the transaction ends; ``None`` when it was deleted or has expired.

    SQLite's transactions lock the whole database. The turn is not joined: after waiting for the lock, PostgreSQL would
    join the turn from before the wait.
    """
    return live_conversations().select_for_update(no_key=True).filter(pk=pk).first()


def move_conversation(
    conversation: Conversation, turn: Turn | None, *, change: StoreChange, renew: bool = True
) -> None:
    """Point a locked conversation at another turn, and restart its time to live if ``renew``."""
    grown = history_bytes(turn) - history_bytes(conversation.turn)
    change.conversation_bytes += grown
    change.response_bytes -= grown
    values = {"expires_at": conversation_expiry()} if renew else {}
    Conversation.objects.filter(pk=conversation.pk).update(turn=turn, used_at=Now(), **values)


def history_bytes(turn: Turn | None) -> int:
    """The bytes of a turn's history; 0 without a turn."""
    return 0 if turn is None else turn.history_bytes


def metadata_bytes(conversation: Conversation) -> int:
    """The bytes of a conversation besides its items."""
    return len(orjson.dumps(conversation.metadata))


def conversation_expiry() -> Any:
    """The expiry of a conversation that is extended now, by the database's clock; ``None`` for never."""
    seconds = settings.RESPONSES_CONVERSATION_STORE_TTL_SECONDS
    return Now() + timedelta(seconds=seconds) if seconds else None


def append_turn(*, row: Response, turn: Turn | None, payloads: Payloads, change: StoreChange) -> None:
    """Append an ended response's input and output to its conversation, in the transaction that finishes the response.

    A conversation that has not changed since the response read its history moves to the response's ``turn``. If it has
    moved meanwhile, it gets a new turn on top of its own history that refers to the same items, and the response's
    turn stays as it is. A conversation that was deleted meanwhile gets nothing.

    With ``store: false`` the response has no turn of its own, but its conversation gets the items, as with OpenAI:
    `store` decides on the response alone.
    """
    if row.conversation_id is None:
        return
    conversation = lock_conversation(row.conversation_id)
    if conversation is None:
        return
    if turn is not None and conversation.turn_id == row.parent_id:
        conversation.turn = row.parent
        move_conversation(conversation, turn, change=change)
        return
    tip = conversation.turn
    if turn is not None:
        late = repeat_turn(turn, parent=tip, change=change)
    else:
        late = write_turn(parent=tip, payloads=with_free_ids(payloads, parent=tip), change=change)
    move_conversation(conversation, late, change=change)
