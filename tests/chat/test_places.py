"""Errors of the pipeline in the words of a chat."""

from typing import Any

import pytest

from responses_api.chat import translate
from responses_api.errors import ApiError, InvalidRequest, InvalidValue
from responses_api.protocol import parse_create

USER = {"role": "user", "content": "Hello"}
MESSAGES: list[Any] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:"}}]},
    {
        "role": "assistant",
        "reasoning": "Hm.",
        "content": "b",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "x"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c2", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "1"},
]
BODY: dict[str, Any] = {
    "messages": MESSAGES,
    "max_tokens": 5,
    "enable_thinking": True,
    "tools": [
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}},
        {
            "type": "custom",
            "custom": {"name": "g", "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a"}}},
        },
    ],
    "tool_choice": {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
    },
}


@pytest.mark.parametrize(
    ("param", "place"),
    [
        ("input", "messages"),
        ("input[0]", "messages[0]"),
        ("input[1].content[0].text", "messages[1].content[0].text"),
        ("input[1].content[1].image_url", "messages[1].content[1].image_url.url"),
        ("input[1].content[1].detail", "messages[1].content[1].image_url.detail"),
        ("input[2]", "messages[2].reasoning"),
        ("input[2].content[0].text", "messages[2].reasoning"),
        ("input[3].content", "messages[2].content"),
        ("input[4].call_id", "messages[2].tool_calls[0].id"),
        ("input[4].arguments", "messages[2].tool_calls[0].function.arguments"),
        ("input[5].name", "messages[2].tool_calls[1].custom.name"),
        ("input[6].output[0].image_url", "messages[3].content[0].image_url.url"),
        ("input[7].call_id", "messages[4].tool_call_id"),
        ("input[7].output", "messages[4].content"),
        ("input[99].x", "messages[99].x"),
        ("max_output_tokens", "max_tokens"),
        ("text.format.schema.properties.input", "response_format.json_schema.schema.properties.input"),
        ("text.format", "response_format"),
        ("text.verbosity", "verbosity"),
        ("reasoning.effort", "reasoning_effort"),
        ("chat_template_kwargs.enable_thinking", "enable_thinking"),
        ("chat_template_kwargs.other", "chat_template_kwargs.other"),
        ("tools", "tools"),
        ("tools[0].name", "tools[0].function.name"),
        ("tools[0].parameters.properties.a[0].b", "tools[0].function.parameters.properties.a[0].b"),
        ("tools[1].format.definition", "tools[1].custom.format.grammar.definition"),
        ("tool_choice", "tool_choice"),
        ("tool_choice.tools[0].name", "tool_choice.allowed_tools.tools[0].function.name"),
        ("model", "model"),
        ("logit_bias.7", "logit_bias.7"),
    ],
)
def test_places(param: str, place: str) -> None:
    assert translate(BODY).places.find(param) == place


def test_the_whole_error_is_translated() -> None:
    """Places in backticks and types of parts; the rest of a message stays, and so do its code and its headers."""
    places = translate(BODY).places
    message = "`input[1].content[1]` has the type 'input_image', and `model` reads 'input_text'. Shorten the input."
    with pytest.raises(InvalidValue) as caught, places.named():
        raise InvalidValue(message, param="input[1].content[1]", headers={"a": "b"})
    error = caught.value
    assert (
        error.message
        == str(error)
        == ("`messages[1].content[1]` has the type 'image_url', and `model` reads 'text'. Shorten the input.")
    )
    assert (error.param, error.code, error.headers) == ("messages[1].content[1]", "invalid_value", {"a": "b"})


def test_without_a_parameter() -> None:
    with pytest.raises(InvalidRequest) as caught, translate(BODY).places.of_parameters().named():
        raise InvalidRequest("`text.format` is wrong.")
    assert (caught.value.message, caught.value.param) == ("`response_format` is wrong.", None)


def test_after_the_admission_no_item_is_known() -> None:
    places = translate(BODY).places.of_parameters()
    assert places.find("input") == "messages"
    assert places.find("max_output_tokens") == "max_tokens"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [BODY["tools"][0]] * 2}, "tools[1].function.name"),
        ({"tool_choice": {"type": "function", "function": {"name": "h"}}}, "tool_choice.function.name"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"stop": "a", "response_format": {"type": "json_object"}}, "stop"),
        ({"messages": [MESSAGES[1]]}, "messages[0].content[1]"),
    ],
)
def test_rules_of_responses_name_the_chat_s_parameters(fields: Any, param: str) -> None:
    """No message speaks of a parameter that only the Responses API has."""
    translation = translate({"messages": [USER], **fields})
    with pytest.raises(ApiError) as caught, translation.places.named():
        parse_create(translation.payload)
    assert caught.value.param == param
    assert not any(word in caught.value.message for word in ("`input", "`text.", "input_text", "input_image"))
