"""The wire format of the Responses API: requests and the objects that answer them. Pure: no Django."""

from responses_api.protocol.items.history import input_items, sent_ids, shown_items
from responses_api.protocol.items.input import item_prefix
from responses_api.protocol.items.pairing import check_tool_pairs, references
from responses_api.protocol.json.values import check_wire_value
from responses_api.protocol.objects.lists import item_list
from responses_api.protocol.objects.model import model_list, model_object
from responses_api.protocol.objects.response import ResponseStatus, deleted_response, initial_response
from responses_api.protocol.objects.sent_items import sent_items
from responses_api.protocol.objects.usage import usage
from responses_api.protocol.requests.create import CreateResponse, parse_create, restore_create
from responses_api.protocol.requests.queries import (
    ListQuery,
    RetrieveQuery,
    parse_list_query,
    parse_retrieve_query,
    refuse_query,
)

__all__ = [
    "CreateResponse",
    "ListQuery",
    "ResponseStatus",
    "RetrieveQuery",
    "check_tool_pairs",
    "check_wire_value",
    "deleted_response",
    "initial_response",
    "input_items",
    "item_list",
    "item_prefix",
    "model_list",
    "model_object",
    "parse_create",
    "parse_list_query",
    "parse_retrieve_query",
    "references",
    "refuse_query",
    "restore_create",
    "sent_ids",
    "sent_items",
    "shown_items",
    "usage",
]
