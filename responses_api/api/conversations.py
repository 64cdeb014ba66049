"""The Conversations API. Views translate; services and selectors decide."""

from collections.abc import Collection

from rest_framework.request import Request
from rest_framework.response import Response

from responses_api.protocol import item_list, objects, parse_list_query, refuse_query
from responses_api.protocol.objects.conversation import deleted_conversation
from responses_api.protocol.requests.conversations import (
    parse_create_conversation,
    parse_create_items,
    parse_update_conversation,
)
from responses_api.protocol.requests.queries import parse_item_query
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


class ConversationsView(Endpoint):
    """``POST /conversations``."""

    def post(self, request: Request) -> Response:
        body = parse_create_conversation(self.body.value())
        return Response(wire_conversation(create_conversation(caller=self.caller, request=body)))


class ConversationView(Endpoint):
    """A conversation without its items."""

    def get(self, request: Request, conversation_id: str) -> Response:
        wire = wire_conversation(get_conversation(caller=self.caller, conversation_id=conversation_id))
        touch_conversation(caller=self.caller, conversation_id=conversation_id)
        return Response(wire)

    def post(self, request: Request, conversation_id: str) -> Response:
        body = parse_update_conversation(self.body.value())
        row = edit_conversation(caller=self.caller, conversation_id=conversation_id, request=body)
        return Response(wire_conversation(row))

    def delete(self, request: Request, conversation_id: str) -> Response:
        refuse_query(self.query)
        delete_conversation(caller=self.caller, conversation_id=conversation_id)
        return Response(deleted_conversation(conversation_id))


class ItemsEndpoint(Endpoint):
    """An endpoint whose answers contain items."""

    def shown(self, items: list[objects.Item], *, include: Collection[str]) -> list[objects.Item]:
        """The items with what the caller's ``include`` asks for."""
        return shown_items(items, include=include, owner=self.caller.scope)


class ConversationItemsView(ItemsEndpoint):
    """A conversation's items, page by page."""

    def get(self, request: Request, conversation_id: str) -> Response:
        query = parse_list_query(self.query)
        with assembling(self.caller.scope) as assembly:
            page = list_conversation_items(
                caller=self.caller, conversation_id=conversation_id, query=query, take=assembly.add
            )
            page["data"] = self.shown(page["data"], include=query.include)
        touch_conversation(caller=self.caller, conversation_id=conversation_id)
        return Response(page)

    def post(self, request: Request, conversation_id: str) -> Response:
        query = parse_item_query(self.query)
        body = parse_create_items(self.body.value())
        added = add_conversation_items(caller=self.caller, conversation_id=conversation_id, request=body)
        return Response(item_list(self.shown(added, include=query.include), has_more=False))


class ConversationItemView(ItemsEndpoint):
    """One item of a conversation."""

    def get(self, request: Request, conversation_id: str, item_id: str) -> Response:
        query = parse_item_query(self.query)
        item = get_conversation_item(caller=self.caller, conversation_id=conversation_id, item_id=item_id)
        touch_conversation(caller=self.caller, conversation_id=conversation_id)
        return Response(self.shown([item], include=query.include)[0])

    def delete(self, request: Request, conversation_id: str, item_id: str) -> Response:
        refuse_query(self.query)
        row = delete_conversation_item(caller=self.caller, conversation_id=conversation_id, item_id=item_id)
        return Response(wire_conversation(row))
