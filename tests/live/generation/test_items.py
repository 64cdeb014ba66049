"""Items other than messages: items that agents replay are accepted, stored and listed."""

from typing import Any

import pytest
from openai import BadRequestError

from tests.live.server import LiveServer

SEARCH: dict[str, Any] = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "q", "queries": ["q"]},
}
REPLAYED: list[Any] = [
    {"role": "user", "content": "first"},
    {"type": "reasoning", "id": "rs_empty", "summary": []},
    {"type": "reasoning", "encrypted_content": "blob", "summary": []},
    SEARCH,
    {"role": "assistant", "content": "answer"},
    {"role": "user", "content": "second"},
]


def test_replayed_reasoning_and_searches_are_stored_and_change_nothing(server: LiveServer) -> None:
    """Listed as they came, and without tokens in the prompt, in this turn and in the next."""
    client = server.client()
    messages = [item for item in REPLAYED if "role" in item]
    plain = client.responses.create(model="smollm2-135m", input=messages)
    full = client.responses.create(model="smollm2-135m", input=REPLAYED)
    assert full.usage is not None
    assert plain.usage is not None
    assert full.usage.input_tokens == plain.usage.input_tokens
    listed = [item.to_dict() for item in client.responses.input_items.list(full.id, order="asc")]
    assert [item["type"] for item in listed] == [item.get("type", "message") for item in REPLAYED]
    assert listed[1] == REPLAYED[1]
    assert str(listed[2]["id"]).startswith("rs_")
    assert listed[3] == SEARCH
    after = client.responses.create(model="smollm2-135m", input="third", previous_response_id=full.id)
    assert after.status == "completed"


def test_a_call_without_its_output_is_refused_and_so_is_an_output_alone(server: LiveServer) -> None:
    client = server.client()
    first = client.responses.create(model="smollm2-135m", input="first")
    call: Any = {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": "{}"}
    output: Any = {"type": "function_call_output", "call_id": "call_1", "output": "4"}
    for alone in (call, output):
        with pytest.raises(BadRequestError) as refused:
            client.responses.create(
                model="smollm2-135m",
                input=[{"role": "user", "content": "a"}, alone],
                previous_response_id=first.id,
            )
        assert (refused.value.code, refused.value.param) == ("invalid_value", "input")
        assert "call_1" in refused.value.message
