"""Conversations and their items, restricted to what the caller may see."""

from dataclasses import dataclass

import orjson
from django.conf import settings
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from responses_api.caller import Caller
from responses_api.errors import InvalidRequest, NotFound, shown
from responses_api.ids import is_client_id
from responses_api.models import Conversation, Response
from responses_api.models.store.response import ACTIVE
from responses_api.protocol import ListQuery, objects
from responses_api.protocol.objects.conversation import conversation_object

from .history import ANCESTRY
from .item_pages import Take, history_places, item_page, unbounded


@dataclass(frozen=True, slots=True)
class Place:
    """An item's place in a turn: the primary keys of the place, the turn and the item, and the item's bytes."""

    entry: int
    turn: int
    item: int
    size: int
    is_output: bool


def live_conversations() -> QuerySet[Conversation]:
    """Conversations that have not expired, or that a running response continues, which will add its turn."""
    running = Response.objects.filter(conversation=OuterRef("pk"), status__in=ACTIVE)
    return Conversation.objects.filter(Q(expires_at=None) | Q(expires_at__gt=Now()) | Exists(running))


def get_conversation(*, caller: Caller, conversation_id: str, param: str | None = None) -> Conversation:
    """The conversation with this id and its turn. Raises a 404 that names ``param``, if the id was a parameter."""
    refuse_without_conversations(param=param)
    row = None
    if is_client_id(conversation_id):
        row = live_conversations().select_related("turn").filter(**caller.own, public_id=conversation_id).first()
    if row is None:
        raise conversation_not_found(conversation_id, param=param)
    return row


def refuse_without_conversations(*, param: str | None = None) -> None:
    """Raise a 400 where conversations are turned off."""
    if settings.RESPONSES_CONVERSATION_STORE_MAX_ENTRIES == 0:
        raise InvalidRequest(
            "This server keeps no conversations (RESPONSES_CONVERSATION_STORE_MAX_ENTRIES is 0). Send the history as "
            "`input`, or continue a response by `previous_response_id`.",
            param=param,
        )


def conversation_not_found(conversation_id: str, *, param: str | None = None) -> NotFound:
    """The same 404 for a conversation that is unknown, expired, deleted or another project's."""
    return NotFound(
        f"Conversation with id '{shown(conversation_id)}' not found. It is unknown, expired or deleted.", param=param
    )


def wire_conversation(row: Conversation) -> objects.Conversation:
    """The conversation object as clients see it."""
    return conversation_object(row.public_id, created_at=int(row.created_at.timestamp()), metadata=row.metadata)


def list_conversation_items(
    *, caller: Caller, conversation_id: str, query: ListQuery, take: Take = unbounded
) -> objects.ItemList:
    """One page of a conversation's items, generated ones included. ``take`` gets its bytes before it is loaded."""
    row = get_conversation(caller=caller, conversation_id=conversation_id)
    places = history_places(row.turn_id, query=query, after=query.after, limit=query.limit + 1)
    return item_page(places, query=query, take=take)


def get_conversation_item(*, caller: Caller, conversation_id: str, item_id: str) -> objects.Item:
    """One item of a conversation."""
    row = get_conversation(caller=caller, conversation_id=conversation_id)
    place = find_place(row.turn_id, item_id)
    if place is None:
        raise item_not_found(item_id)
    payload: objects.Item = orjson.loads(place[1])
    return payload


def item_not_found(item_id: str) -> NotFound:
    """The same 404 for an item that is unknown, deleted or another conversation's."""
    return NotFound(f"Item with id '{shown(item_id)}' not found in this conversation. It is unknown or deleted.")


def find_place(turn_id: int | None, item_id: str) -> tuple[int, str] | None:
    """The primary key of an item's place in a history, and the item's JSON text; ``None`` if it isn't there."""
    if turn_id is None or not is_client_id(item_id):
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            ANCESTRY
            + """
            SELECT entry.id, item.payload FROM ancestry
            JOIN responses_api_turnitem entry ON entry.turn_id = ancestry.id
            JOIN responses_api_item item ON item.id = entry.item_id
            WHERE item.wire_id = %s
            ORDER BY ancestry.depth DESC, entry.position DESC
            LIMIT 1
            """,
            [turn_id, item_id],
        )
        row: tuple[int, str] | None = cursor.fetchone()
        return row


def places_above(turn_id: int, *, below: int | None) -> list[Place]:
    """The places of a history that come after the ancestor ``below`` (``None``: all), oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            ANCESTRY
            + """
            SELECT entry.id, ancestry.id, entry.item_id, item.size, entry.is_output FROM ancestry
            JOIN responses_api_turnitem entry ON entry.turn_id = ancestry.id
            JOIN responses_api_item item ON item.id = entry.item_id
            WHERE ancestry.depth > COALESCE((SELECT depth FROM responses_api_turn WHERE id = %s), -1)
            ORDER BY ancestry.depth, entry.position
            """,
            [turn_id, below],
        )
        return [Place(entry, turn, item, size, bool(out)) for entry, turn, item, size, out in cursor.fetchall()]
