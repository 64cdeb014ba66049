"""A chat's request as a Responses request: every parameter, every kind of message, and what is refused by name."""

from typing import Any

import pytest

from responses_api.chat import translate
from responses_api.errors import ApiError, InvalidRequest
from responses_api.protocol import parse_create

HELLO: list[Any] = [{"role": "user", "content": "Hello"}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
DEFAULTS = {"store": False, "stream": False, "input": [{"type": "message", "role": "user", "content": "Hello"}]}


def payload(**fields: Any) -> dict[str, Any]:
    """The Responses request of a chat; it must be valid."""
    body = translate({"messages": HELLO, **fields}).payload
    parse_create(body)
    return body


def items(*messages: dict[str, Any]) -> list[Any]:
    """The items of these messages."""
    sent: list[Any] = payload(messages=list(messages))["input"]
    return sent


def refused(**fields: Any) -> ApiError:
    with pytest.raises(InvalidRequest) as caught:
        translate({"messages": HELLO, **fields})
    return caught.value


def made(call_id: str, name: str = "f", arguments: str = '{"a": 1}') -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*tool_calls: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(tool_calls), **fields}


def result(call_id: str, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


@pytest.mark.parametrize(
    ("fields", "translated"),
    [
        ({"model": "m", "temperature": 0.5, "top_p": 0.9}, {"model": "m", "temperature": 0.5, "top_p": 0.9}),
        ({"user": "u", "safety_identifier": "s"}, {"user": "u", "safety_identifier": "s"}),
        ({"max_tokens": 5}, {"max_output_tokens": 5}),
        ({"max_completion_tokens": 5, "max_tokens": 5}, {"max_output_tokens": 5}),
        (
            {"stop": ["a", "b"], "seed": 1, "top_k": 2, "min_p": 0.1},
            {"stop": ["a", "b"], "seed": 1, "top_k": 2, "min_p": 0.1},
        ),
        ({"logprobs": True}, {"include": ["message.output_text.logprobs"]}),
        ({"logprobs": True, "top_logprobs": 3}, {"include": ["message.output_text.logprobs"], "top_logprobs": 3}),
        ({"logprobs": False}, {}),
        ({"response_format": {"type": "text"}}, {"text": {"format": {"type": "text"}}}),
        ({"response_format": {"type": "json_object"}}, {"text": {"format": {"type": "json_object"}}}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}},
            {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": False}}},
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": SCHEMA, "strict": True, "description": "d"},
                }
            },
            {
                "text": {
                    "format": {
                        "type": "json_schema",
                        "name": "n",
                        "schema": SCHEMA,
                        "strict": True,
                        "description": "d",
                    }
                }
            },
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": True}}},
            {"text": {"format": {"type": "json_object"}}},
        ),
        (
            {"reasoning_effort": "low", "verbosity": "low"},
            {"reasoning": {"effort": "low"}, "text": {"verbosity": "low"}},
        ),
        ({"enable_thinking": False}, {"chat_template_kwargs": {"enable_thinking": False}}),
        (
            {"enable_thinking": True, "chat_template_kwargs": {"enable_thinking": True, "a": 1}},
            {"chat_template_kwargs": {"enable_thinking": True, "a": 1}},
        ),
        ({"metadata": {"a": "b"}, "service_tier": "auto"}, {"metadata": {"a": "b"}, "service_tier": "auto"}),
        ({"stream": True, "stream_options": {"include_usage": True, "include_obfuscation": False}}, {"stream": True}),
        ({"n": 1, "store": False, "modalities": ["text"], "prediction": {"type": "content", "content": "a"}}, {}),
        ({"audio": None, "functions": None, "function_call": None, "n": None, "tools": None, "stop": None}, {}),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "strict": None}}], "parallel_tool_calls": False},
            {"tools": [{"type": "function", "name": "f", "strict": False}], "parallel_tool_calls": False},
        ),
        (
            {
                "tools": [
                    {
                        "type": "function",
                        "function": {"name": "f", "description": "d", "parameters": SCHEMA, "strict": False},
                    },
                    {"type": "custom", "custom": {"name": "g", "description": "d"}},
                    {"type": "custom", "custom": {"name": "h", "format": {"type": "text"}}},
                    {
                        "type": "custom",
                        "custom": {
                            "name": "i",
                            "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a+"}},
                        },
                    },
                ]
            },
            {
                "tools": [
                    {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA, "strict": False},
                    {"type": "custom", "name": "g", "description": "d"},
                    {"type": "custom", "name": "h", "format": {"type": "text"}},
                    {
                        "type": "custom",
                        "name": "i",
                        "format": {"type": "grammar", "syntax": "regex", "definition": "a+"},
                    },
                ]
            },
        ),
        ({"tool_choice": "none"}, {"tool_choice": "none"}),
    ],
)
def test_parameters(fields: dict[str, Any], translated: dict[str, Any]) -> None:
    assert payload(**fields) == DEFAULTS | translated


def test_the_usage_of_a_stream_is_asked_for() -> None:
    options: list[Any] = [{}, {"stream_options": {}}, {"stream_options": {"include_usage": True}}]
    asked = [translate({"messages": HELLO, "stream": True, **one}).request.includes_usage for one in options]
    assert asked == [False, False, True]


@pytest.mark.parametrize(
    ("choice", "translated"),
    [
        ({"type": "function", "function": {"name": "f"}}, {"type": "function", "name": "f"}),
        ({"type": "custom", "custom": {"name": "g"}}, {"type": "custom", "name": "g"}),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "required",
                    "tools": [
                        {"type": "function", "function": {"name": "f"}},
                        {"type": "custom", "custom": {"name": "g"}},
                    ],
                },
            },
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "f"}, {"type": "custom", "name": "g"}],
            },
        ),
    ],
)
def test_choices_of_tools(choice: Any, translated: Any) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}, {"type": "custom", "custom": {"name": "g"}}]
    assert payload(tools=tools, tool_choice=choice)["tool_choice"] == translated


def test_messages_of_people() -> None:
    """Names and cache hints are not passed on."""
    hint = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    assert items(
        {"role": "system", "content": "Be brief.", "name": "boss"},
        {"role": "developer", "content": [{"type": "text", "text": "Be kind.", **hint}]},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "!"}], "name": "ada"},
    ) == [
        {"type": "message", "role": "system", "content": "Be brief."},
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "Hi"}, {"type": "input_text", "text": "!"}],
        },
    ]


def test_images_are_passed_on() -> None:
    """Whether the model sees them is decided by the rules for items."""
    url = {"url": "https://example.com/a.png", "detail": "low"}
    parts = [{"type": "image_url", "image_url": url}, {"type": "image_url", "image_url": {"url": "data:x"}}]
    [message] = translate({"messages": [{"role": "user", "content": parts}]}).payload["input"]
    assert message["content"] == [
        {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "low"},
        {"type": "input_image", "image_url": "data:x"},
    ]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_an_earlier_answer(field: str) -> None:
    """Its reasoning, its text and its calls, in this order."""
    custom = {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "text"}}
    answer = calls(made("c1", arguments=""), custom, content="Let me see.", **{field: "Hm."})
    assert items(answer, result("c2", "two"), result("c1", [{"type": "text", "text": "one"}])) == [
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
        {"type": "message", "role": "assistant", "content": "Let me see."},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "text"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "two"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "one"}]},
    ]


@pytest.mark.parametrize(
    ("fields", "content"),
    [
        ({"content": "a"}, "a"),
        ({"content": [{"type": "text", "text": "a"}]}, [{"type": "output_text", "text": "a"}]),
        ({"content": None, "refusal": "No."}, [{"type": "refusal", "refusal": "No."}]),
        (
            {"content": "a", "refusal": "No."},
            [{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "No."}],
        ),
        ({"content": [{"type": "refusal", "refusal": "No."}]}, [{"type": "refusal", "refusal": "No."}]),
        ({"content": ""}, None),
        ({"content": None}, None),
        ({}, None),
        ({"content": [{"type": "text", "text": ""}]}, None),
    ],
)
def test_the_text_of_an_earlier_answer(fields: Any, content: Any) -> None:
    """An answer without text is left out."""
    sent = items({"role": "assistant", **fields}, *HELLO)[:-1]
    assert sent == ([] if content is None else [{"type": "message", "role": "assistant", "content": content}])


def test_dumps_of_other_servers_are_taken() -> None:
    """Whatever fields an earlier answer has, in its calls too."""
    call = made("c1")
    call |= {"index": 0, "extra_content": {"a": 1}}
    call["function"] = {**call["function"], "parsed_arguments": {"a": 1}}
    answer = calls(call, content="Hi", annotations=[], audio=None, function_call=None, parsed={"a": 1}, refusal=None)
    assert len(items(*HELLO, answer, result("c1", "1"))) == 4
    assert len(items(*HELLO, {**calls(content="Hi"), "tool_calls": None, "provider_specific_fields": {}})) == 2
    untyped = made("c1")
    del untyped["type"]
    assert items(calls(untyped), result("c1", "1"))[0]["type"] == "function_call"


def test_repeated_call_ids() -> None:
    """An output belongs to the nearest earlier call without one, within one message to the first. Ids become unique."""
    turns = [calls(made("c")), result("c", "1"), *HELLO, calls(made("c"), made("c"), made("c_2")), result("c", "2")]
    sent = items(*turns, result("c", "3"), result("c_2", "4"))
    assert [item["call_id"] for item in sent if item["type"] == "function_call"] == ["c", "c_3", "c_4", "c_2"]
    outputs = [(item["call_id"], item["output"]) for item in sent if item["type"] == "function_call_output"]
    assert outputs == [("c", "1"), ("c_3", "2"), ("c_4", "3"), ("c_2", "4")]


def test_outputs_may_come_after_other_messages_but_the_user_s() -> None:
    between = [{"role": "assistant", "content": "Wait."}, {"role": "system", "content": "Be brief."}]
    assert len(items(calls(made("c")), *between, result("c", "1"), *HELLO)) == 5


@pytest.mark.parametrize(
    ("messages", "param", "call_id"),
    [
        ([result("c1", "1")], "messages[0].tool_call_id", "c1"),
        ([calls(made("c1")), result("c1", "1"), result("c1", "2")], "messages[2].tool_call_id", "c1"),
        ([calls(made("c1"), made("c2")), result("c1", "1")], "messages[0].tool_calls[1].id", "c2"),
        ([calls(made("c1")), *HELLO, result("c1", "1")], "messages[0].tool_calls[0].id", "c1"),
    ],
)
def test_calls_and_outputs_without_each_other(messages: Any, param: str, call_id: str) -> None:
    error = refused(messages=messages)
    assert (error.code, error.param) == ("invalid_value", param)
    assert f"'{call_id}'" in error.message
