"""Small wire objects, and the requests that they answer."""

import pytest

from responses_api.errors import ApiError
from responses_api.protocol.items.compaction import expand, is_summary, summary_item
from responses_api.protocol.items.history import sent_ids
from responses_api.protocol.items.input import parse_item
from responses_api.protocol.json.values import check_wire_value
from responses_api.protocol.objects.compaction import initial_compaction
from responses_api.protocol.objects.conversation import conversation_object, deleted_conversation
from responses_api.protocol.objects.usage import input_tokens
from responses_api.protocol.requests.compact import parse_compact
from responses_api.protocol.requests.conversations import (
    added_items,
    parse_create_conversation,
    parse_create_items,
    parse_update_conversation,
)
from responses_api.protocol.requests.create import parse_create
from responses_api.protocol.requests.queries import parse_item_query

MESSAGE = {"type": "message", "role": "user", "content": "Hi"}


def test_objects_are_as_openai_writes_them() -> None:
    metadata = {"a": "b"}
    made = conversation_object("conv_1", created_at=1, metadata=metadata)
    assert made == {"id": "conv_1", "object": "conversation", "created_at": 1, "metadata": metadata}
    assert made["metadata"] is not metadata
    assert deleted_conversation("conv_1") == {"id": "conv_1", "object": "conversation.deleted", "deleted": True}
    assert input_tokens(3) == {"object": "response.input_tokens", "input_tokens": 3}
    begun = initial_compaction("cmp_1", created_at=1, model="m")
    assert begun == {"id": "cmp_1", "object": "response.compaction", "created_at": 1, "model": "m", "output": []}


def test_a_conversation_may_be_created_empty() -> None:
    made = parse_create_conversation({})
    assert (made.items, made.metadata) == ((), {})
    assert parse_update_conversation({"metadata": None}).metadata == {}
    assert parse_update_conversation({"metadata": {"a": "b"}}).metadata == {"a": "b"}


def test_added_items_keep_their_ids() -> None:
    items = parse_create_items({"items": [MESSAGE, {**MESSAGE, "id": "msg_1"}]}).items
    first, second = added_items(items)
    assert "id" not in first
    assert second["id"] == "msg_1"
    assert parse_item(second).id == "msg_1"
    request = parse_create({"input": [MESSAGE, {**MESSAGE, "id": "msg_1"}]})
    assert sent_ids(request) == ["msg_1"]
    assert sent_ids(parse_create({"input": "Hi"})) == []


@pytest.mark.parametrize("kind", ["item_reference", "compaction_trigger"])
def test_a_conversation_takes_no_orders(kind: str) -> None:
    item = {"type": kind, "id": "msg_1"} if kind == "item_reference" else {"type": kind}
    with pytest.raises(ApiError) as refused:
        parse_create_items({"items": [MESSAGE, item]})
    assert (refused.value.code, refused.value.param) == ("unsupported_parameter", "items[1]")


@pytest.mark.parametrize(
    ("conversation", "code", "param"),
    [
        ({"id": None}, "missing_required_parameter", "conversation.id"),
        ({"id": 1}, "invalid_value", "conversation.id"),
        ({"id": "conv_1", "a": 1}, "unknown_parameter", "conversation.a"),
        (1, "invalid_value", "conversation"),
    ],
)
def test_a_conversation_is_named_by_its_id(conversation: object, code: str, param: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_create({"input": "Hi", "conversation": conversation})
    assert (refused.value.code, refused.value.param) == (code, param)


def test_a_compaction_needs_something_to_compact() -> None:
    assert parse_compact({"model": "m", "previous_response_id": "resp_1"}).input == ()
    with pytest.raises(ApiError) as refused:
        parse_compact({"model": "m"})
    assert (refused.value.code, refused.value.param) == ("missing_required_parameter", "input")
    with pytest.raises(ApiError) as refused:
        parse_compact({"model": "m", "input": "Hi", "stream": True})
    assert (refused.value.code, refused.value.param) == ("unsupported_parameter", "stream")
    assert parse_compact({"model": "m", "input": "Hi", "stream": False}).stream is False


def test_a_history_without_a_compaction_is_unchanged() -> None:
    items = [dict(MESSAGE), summary_item("So it was.")]
    expanded = expand(items, lambda _: pytest.fail("there is nothing to open"))
    assert expanded == items
    assert [is_summary(item) for item in expanded] == [False, True]


def test_routes_of_items_take_an_include() -> None:
    assert parse_item_query([]).include == ()
    with pytest.raises(ApiError):
        parse_item_query([("limit", "1")])


def test_a_name_that_is_not_a_string_is_not_json() -> None:
    with pytest.raises(ApiError, match="names in JSON are strings"):
        check_wire_value({"a": {1: "b"}})
