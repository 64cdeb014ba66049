"""The Response object is complete from the start, and echoes the effective values."""

from typing import Any

from openai.types import Model
from openai.types.responses import Response, ResponseUsage
from openai.types.responses.response_item_list import ResponseItemList

from responses_api.ids import new_id
from responses_api.protocol import (
    deleted_response,
    initial_response,
    input_items,
    item_list,
    model_list,
    model_object,
    parse_create,
    usage,
)
from tests.protocol.references import open_responses_errors

USAGE = usage(input_tokens=12, output_tokens=5, cached_tokens=8, cache_write_tokens=4)


def response(**body: Any) -> dict[str, Any]:
    request = parse_create({"input": "hi", **body})
    made = initial_response(
        request, id=new_id("resp_"), created_at=1_700_000_000, model="m", temperature=0.7, top_p=0.9, store=True
    )
    return dict(made)


def test_every_field_of_openai_and_open_responses_is_there() -> None:
    """A newer SDK that types one more field fails here first."""
    plain = response()
    assert set(Response.model_fields) <= set(plain)
    Response.model_validate(plain, strict=True)
    assert open_responses_errors("ResponseResource", plain) == []


def test_effective_values_are_echoed() -> None:
    plain = response()
    assert (plain["temperature"], plain["top_p"], plain["model"]) == (0.7, 0.9, "m")
    assert (plain["tools"], plain["tool_choice"], plain["truncation"]) == ([], "auto", "disabled")
    assert plain["text"] == {"format": {"type": "text"}, "verbosity": "medium"}
    assert plain["reasoning"] == {"effort": None, "summary": None}
    assert (plain["usage"], plain["output"], plain["status"], plain["metadata"]) == (None, [], "in_progress", {})
    assert plain["service_tier"] == "default"


def test_sent_values_are_echoed() -> None:
    sent: dict[str, Any] = {
        "instructions": "Be brief.",
        "previous_response_id": "resp_1",
        "metadata": {"a": "b"},
        "max_output_tokens": 16,
        "max_tool_calls": 2,
        "user": "u",
        "safety_identifier": "s",
        "prompt_cache_key": "k",
        "prompt_cache_retention": "24h",
        "presence_penalty": -0.5,
        "frequency_penalty": 2,
        "tool_choice": "none",
        "parallel_tool_calls": False,
    }
    cache = {"mode": "explicit", "ttl": "12h", "comparison_response_id": "resp_2"}
    full = response(
        **sent,
        client_metadata={"x": "y"},
        text={"verbosity": "low"},
        reasoning={"summary": "auto"},
        prompt_cache_options=cache,
        tools=[{"type": "function", "name": "f"}],
        top_logprobs=3,
    )
    assert full["top_logprobs"] == 3
    assert full["prompt_cache_options"] == cache
    assert full["reasoning"] == {"effort": None, "summary": "auto"}
    assert {name: full[name] for name in sent} == sent
    assert full["text"]["verbosity"] == "low"
    assert "client_metadata" not in full
    Response.model_validate(full, strict=True)
    assert open_responses_errors("ResponseResource", full) == []


def test_usage_adds_up_and_has_its_details() -> None:
    assert ResponseUsage.model_validate(USAGE, strict=True).total_tokens == 17
    assert USAGE["input_tokens_details"] == {"cached_tokens": 8, "cache_write_tokens": 4}
    assert USAGE["output_tokens_details"] == {"reasoning_tokens": 0}


def test_lists_name_their_ends() -> None:
    items: list[Any] = [
        *input_items(parse_create({"input": [{"role": "user", "content": c} for c in "abc"]}), new_id=new_id)
    ]
    page = item_list(items, has_more=True)
    assert ResponseItemList.model_validate(page).first_id == items[0]["id"]
    assert (page["last_id"], page["has_more"], page["object"]) == (items[-1]["id"], True, "list")
    empty: dict[str, Any] = {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}
    assert item_list([], has_more=False) == empty


def test_models_and_deletions_have_openais_shape() -> None:
    model = model_object("smollm2-135m", created=1, owned_by="local", state="idle")
    assert Model.model_validate(model, strict=True).object == "model"
    assert model_list([model]) == {"object": "list", "data": [model]}
    assert deleted_response("resp_1") == {"id": "resp_1", "object": "response", "deleted": True}
