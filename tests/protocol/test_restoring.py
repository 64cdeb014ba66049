"""An admitted request is restored unchanged from its row, without applying the rules again."""

import json
from typing import Any

import pytest

from responses_api.errors import ApiError, ServerError
from responses_api.protocol import parse_create, restore_create
from responses_api.protocol.requests.compact import parse_compact, restore_compact
from tests.protocol.test_create import CLIENTS
from tests.protocol.test_items import ITEMS
from tests.protocol.test_sampling import ALL

USER = {"role": "user", "content": "hi", "phase": None}
SETTINGS = {
    "conversation": {"id": "conv_1"},
    "include": ["reasoning.encrypted_content"],
    "metadata": {"a": "b"},
    "reasoning": {"effort": "low", "summary": None},
    "service_tier": "auto",
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": None}},
    "tools": None,
}
BODIES: list[dict[str, Any]] = [
    *(client["body"] for client in CLIENTS.values()),
    {"input": [USER, *(item for item, _ in ITEMS), {"type": "compaction_trigger"}]},
    {"input": [{**USER, "id": "x" * 300}], **SETTINGS},
    {"input": "hi", **ALL},
]


@pytest.mark.parametrize("body", BODIES)
def test_a_checked_request_is_restored_unchanged(body: dict[str, Any]) -> None:
    """With the same types and tools, without nulls and without ids that are too long to store."""
    checked, restored = parse_create(body), restore_create(json.dumps(body))
    assert restored == checked
    assert restored.declared_tools == checked.declared_tools
    assert restored.offered_tools == checked.offered_tools


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"input": "hi", "previous_response_id": "resp_1", "conversation": "conv_1"},
        {"input": [{"type": "compaction_trigger"}, USER]},
        {"input": "hi", "stop": "x", "text": {"format": {"type": "json_object"}}},
        {"input": "hi", "tools": [{"type": "function", "name": "f"}] * 2},
        {"input": "a\0b"},
    ],
)
def test_the_rules_on_a_whole_body_are_not_applied_again(body: dict[str, Any]) -> None:
    """A row that was admitted before a rule existed can still be answered or ended."""
    with pytest.raises(ApiError):
        parse_create(body)
    assert restore_create(json.dumps(body)).model_fields_set == body.keys()


def test_a_compaction_is_restored_too() -> None:
    body = {"model": "m", "input": [USER], "keep_tokens": None, "service_tier": "auto"}
    assert restore_compact(json.dumps(body)) == parse_compact(body)
    assert restore_compact('{"model": "m"}').input == ()


@pytest.mark.parametrize("body", [{"input": 1}, {"input": "hi", "later": "secret"}])
def test_an_unreadable_row_fails_without_quoting_its_content(body: dict[str, Any]) -> None:
    """A field that this version doesn't know is not ignored."""
    with pytest.raises(ServerError, match="Another version") as failed:
        restore_create(json.dumps(body))
    assert failed.value.__suppress_context__
    assert "secret" not in str(failed.value)
