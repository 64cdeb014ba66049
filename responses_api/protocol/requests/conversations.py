"""The bodies of the Conversations API, and the parameter `conversation`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from responses_api.protocol.items.base import ClientId
from responses_api.protocol.items.input import InputItem
from responses_api.protocol.json.values import describe
from responses_api.protocol.requests.parameters import Metadata
from responses_api.protocol.validation.base import WireModel, refusal
from responses_api.protocol.validation.markers import Allows
from responses_api.protocol.validation.parsing import parse_body

MAX_ITEMS = 20


def _check_count(value: object) -> object:
    if isinstance(value, list) and len(value) > MAX_ITEMS:
        raise refusal(
            "invalid_value", f"must have at most {MAX_ITEMS} items, but it has {len(value)}; send several times"
        )
    return value


def _id_of(value: object) -> object:
    """The id, also from `{"id": …}`, the form in which responses echo it."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict):
        raise refusal(
            "invalid_value", f"must be a conversation's id or an object with its `id`, but it is {describe(value)}"
        )
    for name in value:
        if name != "id":
            raise refusal("unknown_parameter", "is not a known parameter; send the `id` alone", field=name)
    if value.get("id") is None:
        raise refusal("missing_required_parameter", "is missing; send the conversation's id", field="id")
    if not isinstance(value["id"], str):
        raise refusal("invalid_value", f"must be a string, but it is {describe(value['id'])}", field="id")
    return value["id"]


def _refuse_orders(item: InputItem) -> InputItem:
    if item.type == "item_reference":
        raise refusal("unsupported_parameter", "refers to an item; a conversation takes items themselves")
    if item.type == "compaction_trigger":
        raise refusal("unsupported_parameter", "asks for a compaction, which a conversation can't do; leave it out")
    return item


Items = Annotated[
    tuple[Annotated[InputItem, AfterValidator(_refuse_orders)], ...],
    Field(strict=False, fail_fast=True),
    BeforeValidator(_check_count),
    Allows(maxItems=MAX_ITEMS),
]
ConversationId = Annotated[
    ClientId,
    BeforeValidator(_id_of),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {"id": {"type": "string"}},
                    "required": ["id"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]


class CreateConversation(WireModel):
    """The body of `POST /conversations`; every field is optional."""

    items: Items = ()
    metadata: Metadata = Field(default_factory=dict)


class UpdateConversation(WireModel):
    """The body of `POST /conversations/{id}`: the new metadata; null empties it, as in OpenAI's types."""

    metadata: Metadata


class CreateItems(WireModel):
    """The body of `POST /conversations/{id}/items`."""

    items: Items


def parse_create_conversation(payload: object) -> CreateConversation:
    """Raises an ApiError (400) that names one error."""
    return parse_body(CreateConversation, payload)


def parse_update_conversation(payload: object) -> UpdateConversation:
    """Raises an ApiError (400) that names one error."""
    if isinstance(payload, dict) and "metadata" in payload and payload["metadata"] is None:
        payload = {**payload, "metadata": {}}
    return parse_body(UpdateConversation, payload)


def parse_create_items(payload: object) -> CreateItems:
    """Raises an ApiError (400) that names one error."""
    return parse_body(CreateItems, payload)


def added_items(items: Iterable[InputItem]) -> list[dict[str, Any]]:
    """The items in wire form, oldest first; with `id` if the client gave one."""
    return [item.wire() if item.id is None else {"id": item.id, **item.wire()} for item in items]
