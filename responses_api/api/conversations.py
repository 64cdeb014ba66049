"""The Conversations API. Views translate; services and selectors decide."""

from collections.abc import Collection
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from responses_api.protocol import list_envelope, parse_list_query, refuse_query
from responses_api.protocol.conversations import (
    deleted_conversation,
    parse_create_conversation,
    parse_create_items,
    parse_item_query,
    parse_update_conversation,
)
from responses_api.selectors.conversations import (
    get_conversation,
    get_conversation_item,
    list_conversation_items,
    wire_conversation,
)
from responses_api.services.prompts.assemble_history import assembling
from responses_api.services.prompts.show_items import shown_items
from responses_api.services.store.create_conversation import create_conversation
from responses_api.services.store.delete_conversation import delete_conversation
from responses_api.services.store.edit_conversation import edit_conversation
from responses_api.services.store.edit_conversation_items import add_conversation_items, delete_conversation_item
from responses_api.services.store.touch_store import touch_conversation

from .endpoint import Endpoint
from .request_scope import payload
from .views import arguments, caller


def body(request: Request) -> Any:
    """The request's JSON value. Raises what made it unreadable."""
    return payload(request._request.scope)  # type: ignore[attr-defined]


def shown(request: Request, items: list[dict[str, Any]], *, include: Collection[str]) -> list[dict[str, Any]]:
    """The items as the caller asked for them."""
    return shown_items(items, include=include, owner=caller(request).scope)


class ConversationsView(Endpoint):
    """``POST /conversations``."""

    def post(self, request: Request) -> Response:
        asked = parse_create_conversation(body(request))
        return Response(wire_conversation(create_conversation(caller=caller(request), request=asked)))


class ConversationView(Endpoint):
    """A conversation without its items."""

    def get(self, request: Request, conversation_id: str) -> Response:
        found = wire_conversation(get_conversation(caller=caller(request), conversation_id=conversation_id))
        touch_conversation(caller=caller(request), conversation_id=conversation_id)
        return Response(found)

    def post(self, request: Request, conversation_id: str) -> Response:
        asked = parse_update_conversation(body(request))
        row = edit_conversation(caller=caller(request), conversation_id=conversation_id, request=asked)
        return Response(wire_conversation(row))

    def delete(self, request: Request, conversation_id: str) -> Response:
        refuse_query(arguments(request))
        delete_conversation(caller=caller(request), conversation_id=conversation_id)
        return Response(deleted_conversation(conversation_id))


class ConversationItemsView(Endpoint):
    """A conversation's items, page by page."""

    def get(self, request: Request, conversation_id: str) -> Response:
        query = parse_list_query(arguments(request))
        with assembling(caller(request).scope) as assembly:
            page = list_conversation_items(
                caller=caller(request), conversation_id=conversation_id, query=query, take=assembly.add
            )
            page["data"] = shown(request, page["data"], include=query.include)
        touch_conversation(caller=caller(request), conversation_id=conversation_id)
        return Response(page)

    def post(self, request: Request, conversation_id: str) -> Response:
        query = parse_item_query(arguments(request))
        asked = parse_create_items(body(request))
        added = add_conversation_items(caller=caller(request), conversation_id=conversation_id, request=asked)
        return Response(list_envelope(shown(request, added, include=query.include), has_more=False))


class ConversationItemView(Endpoint):
    """One item of a conversation."""

    def get(self, request: Request, conversation_id: str, item_id: str) -> Response:
        query = parse_item_query(arguments(request))
        found = get_conversation_item(caller=caller(request), conversation_id=conversation_id, item_id=item_id)
        touch_conversation(caller=caller(request), conversation_id=conversation_id)
        return Response(shown(request, [found], include=query.include)[0])

    def delete(self, request: Request, conversation_id: str, item_id: str) -> Response:
        refuse_query(arguments(request))
        row = delete_conversation_item(caller=caller(request), conversation_id=conversation_id, item_id=item_id)
        return Response(wire_conversation(row))
