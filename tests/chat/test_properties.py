"""Any request that the SDK's types allow is translated, or refused at a place of its own."""

import re
from typing import Any

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from responses_api.chat import CreateChatCompletion, Translation, translate
from responses_api.errors import ApiError
from responses_api.protocol import parse_create
from tests.protocol.test_create_properties import JSON, VALID_TEXT

SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

IDS = st.sampled_from(["call_0", "call_1"])
NAMES = st.sampled_from(["f", "g", "not a name"])
TEXT_PARTS = st.fixed_dictionaries({"type": st.just("text"), "text": VALID_TEXT})
IMAGES = st.fixed_dictionaries(
    {
        "type": st.just("image_url"),
        "image_url": st.fixed_dictionaries({"url": VALID_TEXT}, optional={"detail": st.sampled_from(["auto", "low"])}),
    }
)
OTHER_PARTS = st.fixed_dictionaries({"type": st.sampled_from(["input_audio", "file", "refusal"])})
CONTENTS = VALID_TEXT | st.lists(TEXT_PARTS | IMAGES | OTHER_PARTS, max_size=2)
FUNCTION_CALLS = st.fixed_dictionaries(
    {
        "id": IDS,
        "type": st.just("function"),
        "function": st.fixed_dictionaries({"name": NAMES, "arguments": VALID_TEXT}),
    }
)
CUSTOM_CALLS = st.fixed_dictionaries(
    {"id": IDS, "type": st.just("custom"), "custom": st.fixed_dictionaries({"name": NAMES, "input": VALID_TEXT})}
)
MESSAGES = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "developer", "user", "function"]), "content": CONTENTS}),
    st.fixed_dictionaries(
        {"role": st.just("assistant")},
        optional={
            "content": st.none() | CONTENTS,
            "refusal": st.none() | VALID_TEXT,
            "reasoning_content": st.none() | VALID_TEXT,
            "tool_calls": st.lists(FUNCTION_CALLS | CUSTOM_CALLS, max_size=2),
            "function_call": st.none() | st.just({"name": "f", "arguments": ""}),
        },
    ),
    st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": IDS, "content": CONTENTS}),
)
SCHEMAS = st.sampled_from([{"type": "object"}, {"type": "string"}, {"type": "x"}])
TOOLS = st.one_of(
    st.fixed_dictionaries(
        {
            "type": st.just("function"),
            "function": st.fixed_dictionaries(
                {"name": NAMES}, optional={"parameters": SCHEMAS, "strict": st.none() | st.booleans()}
            ),
        }
    ),
    st.fixed_dictionaries({"type": st.just("custom"), "custom": st.fixed_dictionaries({"name": NAMES})}),
)
NAMED = st.sampled_from([{"type": "function", "function": {"name": "f"}}, {"type": "custom", "custom": {"name": "g"}}])
CHOICES = (
    st.sampled_from(["auto", "none", "required"])
    | NAMED
    | st.fixed_dictionaries(
        {
            "type": st.just("allowed_tools"),
            "allowed_tools": st.fixed_dictionaries(
                {"mode": st.sampled_from(["auto", "required"]), "tools": st.lists(NAMED, max_size=2)}
            ),
        }
    )
)
TYPED = st.fixed_dictionaries(
    {"messages": st.lists(MESSAGES, max_size=4)},
    optional={
        "model": st.just("m"),
        "max_tokens": st.none() | st.integers(1, 3),
        "max_completion_tokens": st.none() | st.integers(1, 3),
        "n": st.none() | st.integers(1, 2),
        "stop": st.none() | st.just("a") | st.just(["a"]),
        "stream": st.none() | st.booleans(),
        "stream_options": st.none() | st.just({"include_usage": True}),
        "logprobs": st.none() | st.booleans(),
        "top_logprobs": st.none() | st.integers(0, 20),
        "tools": st.lists(TOOLS, max_size=2),
        "tool_choice": CHOICES,
        "response_format": st.sampled_from(
            [{"type": "text"}, {"type": "json_object"}, {"type": "json_schema", "json_schema": {"name": "n"}}]
        ),
        "reasoning_effort": st.none() | st.sampled_from(["low", "max"]),
        "verbosity": st.none() | st.sampled_from(["low", "high"]),
        "metadata": st.none() | st.dictionaries(VALID_TEXT, VALID_TEXT, max_size=2),
        "modalities": st.none() | st.lists(st.sampled_from(["text", "audio"]), max_size=2),
        "store": st.none() | st.booleans(),
    },
)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "messages": st.lists(MESSAGES | JSON, max_size=3) | JSON,
        **{name: JSON for name in CreateChatCompletion.model_fields if name != "messages"},
    },
)
OF_RESPONSES = re.compile(r"`(input|text|max_output_tokens|include|reasoning)\b")


def answer(body: Any) -> Translation | ApiError:
    """The translation of a request, if the Responses API takes it, or the error."""
    try:
        translation = translate(body)
        with translation.places.named():
            parse_create(translation.payload)
    except ApiError as error:
        return error
    return translation


def holder(body: Any, param: str) -> Any:
    """The object or the array that has, or should have, the value at a place."""
    for step in re.findall(r"[^.\[\]]+", param)[:-1]:
        body = body[int(step)] if isinstance(body, list) else body[step]
    return body


@SETTINGS
@given(TYPED)
def test_what_the_sdk_allows_is_translated_or_refused_at_its_place(body: dict[str, Any]) -> None:
    """No error names a place or a parameter that only the Responses API has. Ids of calls are unique."""
    result = answer(body)
    if isinstance(result, ApiError):
        assert result.status == 400
        assert not OF_RESPONSES.search(result.message)
        assert isinstance(holder(body, result.param or ""), dict | list)
        return
    call_ids = [item["call_id"] for item in result.payload["input"] if item["type"].endswith("_call")]
    assert len(call_ids) == len(set(call_ids))


@SETTINGS
@given(BODIES | JSON)
def test_any_json_is_translated_or_refused(body: Any) -> None:
    result = answer(body)
    if isinstance(result, ApiError):
        assert result.status == 400
        orjson.dumps(result.envelope())
