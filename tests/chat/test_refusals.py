"""What a chat's request is refused for: one error, which names the place and the remedy."""

from typing import Any

import pytest

from tests.chat.test_translation import calls, refused


def user(content: Any, **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": content, **fields}]}


def assistant(*content: Any) -> dict[str, Any]:
    return {"messages": [{"role": "assistant", "content": list(content)}]}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"store": True}, "store"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"modalities": ["text", "audio"]}, "modalities[1]"),
        ({"moderation": {"model": "x"}}, "moderation"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"functions": []}, "functions"),
        ({"function_call": "auto"}, "function_call"),
        ({"messages": [{"role": "function", "name": "f", "content": "1"}]}, "messages[0].role"),
        ({"messages": [{"role": "assistant", "function_call": {"name": "f"}}]}, "messages[0].function_call"),
        ({"messages": [{"role": "assistant", "audio": {"id": "a"}}]}, "messages[0].audio"),
        (user([{"type": "input_audio"}]), "messages[0].content[0]"),
        (user([{"type": "file"}]), "messages[0].content[0]"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"background": True}, "background"),
    ],
)
def test_refusals_by_name(fields: dict[str, Any], param: str) -> None:
    error = refused(**fields)
    assert (error.code, error.param) == ("unsupported_parameter", param)
    assert ("POST /responses" in error.message) == (
        param in ("previous_response_id", "conversation", "background", "store")
    )


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"messages": []}, "invalid_value", "messages"),
        ({"messages": None}, "missing_required_parameter", "messages"),
        ({"messages": [{"role": "assistant", "content": ""}]}, "invalid_value", "messages"),
        ({"messages": "Hello"}, "invalid_value", "messages"),
        ({"messages": ["Hello"]}, "invalid_value", "messages[0]"),
        ({"messages": [{"content": "Hello"}]}, "missing_required_parameter", "messages[0].role"),
        ({"messages": [{"role": "users", "content": "a"}]}, "invalid_value", "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "missing_required_parameter", "messages[0].content"),
        (user(1), "invalid_value", "messages[0].content"),
        (user("a", parsed=1), "unknown_parameter", "messages[0].parsed"),
        (
            {"messages": [{"role": "system", "content": [{"type": "image_url"}]}]},
            "invalid_value",
            "messages[0].content[0].type",
        ),
        (user([{"type": "txt"}]), "invalid_value", "messages[0].content[0].type"),
        (assistant({"type": "txt"}), "invalid_value", "messages[0].content[0].type"),
        ({"messages": [calls(1)]}, "invalid_value", "messages[0].tool_calls[0]"),
        ({"messages": [calls({"id": "c", "type": "x"})]}, "invalid_value", "messages[0].tool_calls[0].type"),
        (
            {"messages": [calls({"type": "function", "function": {}})]},
            "missing_required_parameter",
            "messages[0].tool_calls[0].id",
        ),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "invalid_value", "max_tokens"),
        ({"top_logprobs": 2}, "invalid_value", "top_logprobs"),
        ({"stream_options": {"include_usage": True}}, "invalid_value", "stream_options"),
        ({"stream": True, "stream_options": {"usage": True}}, "unknown_parameter", "stream_options.usage"),
        ({"n": 0}, "invalid_value", "n"),
        ({"modalities": ["video"]}, "invalid_value", "modalities[0]"),
        ({"prediction": "a"}, "invalid_value", "prediction"),
        (
            {"enable_thinking": True, "chat_template_kwargs": {"enable_thinking": False}},
            "invalid_value",
            "enable_thinking",
        ),
        ({"max_output_tokens": 1}, "unknown_parameter", "max_output_tokens"),
        ({"response_format": {"type": "xml"}}, "invalid_value", "response_format.type"),
        ({"response_format": {"type": "json_schema", "name": "n"}}, "unknown_parameter", "response_format.name"),
        ({"tools": [{"type": "web_search"}]}, "invalid_value", "tools[0].type"),
        ({"tools": [{"type": "function", "name": "f"}]}, "unknown_parameter", "tools[0].name"),
        ({"tools": [{"type": "function", "function": {"name": "f g"}}]}, "invalid_value", "tools[0].function.name"),
        (
            {"tools": [{"type": "custom", "custom": {"name": "g", "format": {"type": "x"}}}]},
            "invalid_value",
            "tools[0].custom.format.type",
        ),
        ({"tool_choice": "always"}, "invalid_value", "tool_choice"),
        ({"tool_choice": {"type": "mcp"}}, "invalid_value", "tool_choice.type"),
        (
            {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [1]}}},
            "invalid_value",
            "tool_choice.allowed_tools.tools[0]",
        ),
    ],
)
def test_other_errors(fields: dict[str, Any], code: str, param: str) -> None:
    error = refused(**fields)
    assert (error.code, error.param) == (code, param)
