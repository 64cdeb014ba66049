"""Whatever JSON a client sends, it gets a request or one ApiError."""

from contextlib import suppress
from typing import Any

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from inference.dialects import DIALECTS
from responses_api.errors import ApiError, InvalidValue
from responses_api.ids import new_id
from responses_api.protocol import (
    CreateResponse,
    check_tool_pairs,
    initial_response,
    input_items,
    parse_create,
    restore_create,
    shown_items,
)
from responses_api.protocol.objects import Item

ITEM: TypeAdapter[Any] = TypeAdapter(Item)

TEXT = st.text(st.characters(), max_size=20) | st.sampled_from(["\0", "\ud800", "type", "message", "<item>", "[key]"])
SCALARS = st.none() | st.booleans() | st.integers() | st.sampled_from([10**30, -(2**63), 2**64]) | st.floats() | TEXT
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=12
)

PART_TYPES = st.sampled_from(["input_text", "output_text", "refusal", "input_image", "text"])
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "type": PART_TYPES | JSON,
        "text": TEXT | JSON,
        "refusal": TEXT | JSON,
        "annotations": JSON,
        "logprobs": JSON,
    },
)
ITEMS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["message", "reasoning", "function_call", "mcp_call", "item_reference"]) | JSON,
        "role": st.sampled_from(["user", "assistant", "system", "developer", "tool"]) | JSON,
        "content": TEXT | st.lists(PARTS | JSON, max_size=3) | JSON,
        "id": TEXT | JSON,
        "status": st.sampled_from(["completed", "incomplete"]) | JSON,
        "phase": st.sampled_from(["commentary", "final_answer"]) | JSON,
        "extra": JSON,
        **dict.fromkeys(("call_id", "name", "arguments", "server_label", "summary", "error"), TEXT | JSON),
    },
)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "input": TEXT | st.lists(ITEMS | JSON, max_size=3) | JSON,
        **{name: JSON for name in CreateResponse.model_fields if name != "input"},
    },
)


def answer(body: object) -> CreateResponse | ApiError:
    try:
        return parse_create(body)
    except ApiError as error:
        return error


def check(body: object) -> None:
    request = answer(body)
    if isinstance(request, ApiError):
        assert request.status == 400
        assert b"\\u0000" not in orjson.dumps(request.envelope())
        return
    assert restore_create(orjson.dumps(body).decode()) == request
    items = input_items(request, new_id=new_id)
    orjson.dumps(items)
    for item in items:
        # References are replaced before they are listed.
        assert item["type"] == "item_reference" or ITEM.validate_python(item, strict=True) == item
    orjson.dumps(shown_items(items, request.instructions))
    with suppress(InvalidValue):
        check_tool_pairs((), items)
    base = initial_response(request, id="resp_1", created_at=1, model="m", temperature=1.0, top_p=1.0, store=True)
    orjson.dumps(base)


SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SETTINGS
@given(JSON)
def test_any_json_is_a_request_or_one_error(body: object) -> None:
    check(body)


@SETTINGS
@given(BODIES)
def test_any_body_with_known_names_is_a_request_or_one_error(body: dict[str, Any]) -> None:
    check(body)


@SETTINGS
@given(st.lists(ITEMS, min_size=1, max_size=3))
def test_any_items_are_a_request_or_one_error(items: list[dict[str, Any]]) -> None:
    check({"input": items})


VALID_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@SETTINGS
@given(st.sampled_from(["user", "assistant", "system", "developer"]), VALID_TEXT, VALID_TEXT)
def test_equivalent_spellings_are_one_input(role: str, one: str, two: str) -> None:
    """A string, its parts, with and without `type`, and replayed listed items all render the same."""
    part = "output_text" if role == "assistant" else "input_text"
    spellings: list[dict[str, Any]] = [
        {"role": role, "content": one + two},
        {"type": "message", "role": role, "content": [{"type": part, "text": one + two}]},
        {"role": role, "content": [{"type": part, "text": one}, {"type": part, "text": two}], "status": None},
    ]
    lists = [input_items(parse_create({"input": [spelling]}), new_id=new_id) for spelling in spellings]
    lists += [input_items(parse_create({"input": listed}), new_id=new_id) for listed in lists]
    rendered = [DIALECTS["hermes"].template_messages(shown_items(listed)) for listed in lists]
    assert all(messages == rendered[0] for messages in rendered)
