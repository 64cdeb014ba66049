"""Create requests: what they accept, and the single error that they report otherwise."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from openai.types.responses import ResponseIncludable
from openai.types.responses.response_create_params import PromptCacheOptions as SdkPromptCacheOptions
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from openai.types.shared_params import Reasoning as SdkReasoning
from openai.types.shared_params.reasoning_effort import ReasoningEffort as SdkReasoningEffort

from responses_api.errors import ApiError
from responses_api.protocol import CreateResponse, parse_create
from responses_api.protocol.requests.parameters import INCLUDABLE, PromptCacheOptions, Reasoning

NESTED: list[Any] = []
for _ in range(10_000):
    NESTED = [NESTED]


def user(content: object) -> dict[str, Any]:
    return {"role": "user", "content": content}


def error_of(body: object) -> ApiError:
    with pytest.raises(ApiError) as caught:
        parse_create(body)
    assert caught.value.status == 400
    assert "\0" not in str(caught.value.param) + caught.value.message
    assert caught.value.message.endswith((".", "?"))
    return caught.value


MESSAGE_ERRORS: list[tuple[object, str, str]] = [
    (5, "input", "invalid_value"),
    ({}, "input", "invalid_value"),
    ([5], "input[0]", "invalid_value"),
    ([None], "input[0]", "invalid_value"),
    ([user("a"), {"type": "mesage"}], "input[1]", "invalid_value"),
    ([user("a"), {"type": {}}], "input[1]", "invalid_value"),
    ([user("a"), {"type": "function_call"}], "input[1].call_id", "missing_required_parameter"),
    ([{"content": "a"}], "input[0].role", "missing_required_parameter"),
    ([{"role": "tool", "content": "a"}], "input[0].role", "invalid_value"),
    ([{"role": ["user"], "content": "a"}], "input[0].role", "invalid_value"),
    ([{"role": "user"}], "input[0].content", "missing_required_parameter"),
    ([user(None)], "input[0].content", "missing_required_parameter"),
    ([user(5)], "input[0].content", "invalid_value"),
    ([{"role": "user", "contnt": "a"}], "input[0].contnt", "unknown_parameter"),
    ([user(["a"])], "input[0].content[0]", "invalid_value"),
    ([user([{"text": "a"}])], "input[0].content[0].type", "missing_required_parameter"),
    ([user([{"type": "text", "text": "a"}])], "input[0].content[0]", "invalid_value"),
    ([user([{"type": "output_text", "text": "a"}])], "input[0].content[0]", "invalid_value"),
    ([user([{"type": "input_image", "image_url": "a"}])], "input[0].content[0]", "invalid_value"),
    ([user([{"type": "input_text"}])], "input[0].content[0].text", "missing_required_parameter"),
    ([user([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": 5}])],
     "input[0].content[1].text", "invalid_value"),
    ([user([{"type": "input_text", "text": "a", "txt": 1}])], "input[0].content[0].txt", "unknown_parameter"),
    ([{"role": "assistant", "content": [{"type": "input_text", "text": "a"}]}],
     "input[0].content[0]", "invalid_value"),
    ([{"role": "assistant", "content": [{"type": "refusal"}]}],
     "input[0].content[0].refusal", "missing_required_parameter"),
    ([{"role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": [{"type": "x"}]}]}],
     "input[0].content[0].annotations[0]", "invalid_value"),
    ([{"role": "assistant", "content": [{"type": "output_text", "text": "a", "logprobs": [{"token": "a"}]}]}],
     "input[0].content[0].logprobs[0].logprob", "missing_required_parameter"),
    ([{**user("a"), "id": ""}], "input[0].id", "invalid_value"),
    ([{**user("a"), "id": 7}], "input[0].id", "invalid_value"),
    ([{**user("a"), "status": "done"}], "input[0].status", "invalid_value"),
    ([{**user("a"), "phase": "final"}], "input[0].phase", "invalid_value"),
    ([user("a\0b")], "input[0].content", "invalid_value"),
    ([user([{"type": "input_text", "text": "\ud83d"}])], "input[0].content[0].text", "invalid_value"),
    ([user(NESTED)], "input", "invalid_value"),
    ([], "input", "missing_required_parameter"),
    (None, "input", "missing_required_parameter"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "param", "code"), MESSAGE_ERRORS)
def test_an_error_in_the_input_has_its_path(value: object, param: str, code: str) -> None:
    """One error for one mistake, with the innermost place, never the name of a union's branch."""
    error = error_of({"input": value})
    assert (error.param, error.code) == (param, code)
    assert f"`{param}`" in error.message


PARAMETER_ERRORS: list[tuple[dict[str, Any], str, str]] = [
    ({"model": ""}, "model", "invalid_value"),
    ({"model": 5}, "model", "invalid_value"),
    ({"instructions": ["a"]}, "instructions", "invalid_value"),
    ({"instructions": "a\0"}, "instructions", "invalid_value"),
    ({"previous_response_id": ""}, "previous_response_id", "invalid_value"),
    ({"store": "true"}, "store", "invalid_value"),
    ({"store": 1}, "store", "invalid_value"),
    ({"stream": 0}, "stream", "invalid_value"),
    ({"temperature": -0.1}, "temperature", "invalid_value"),
    ({"temperature": 2.1}, "temperature", "invalid_value"),
    ({"temperature": "1"}, "temperature", "invalid_value"),
    ({"temperature": True}, "temperature", "invalid_value"),
    ({"temperature": float("nan")}, "temperature", "invalid_value"),
    ({"top_p": 1.5}, "top_p", "invalid_value"),
    ({"max_output_tokens": 0}, "max_output_tokens", "invalid_value"),
    ({"max_output_tokens": 1.0}, "max_output_tokens", "invalid_value"),
    ({"max_output_tokens": "16"}, "max_output_tokens", "invalid_value"),
    ({"max_output_tokens": True}, "max_output_tokens", "invalid_value"),
    ({"max_output_tokens": 2**31}, "max_output_tokens", "invalid_value"),
    ({"seed": 2**63}, "seed", "invalid_value"),
    ({"seed": 10**5000}, "seed", "invalid_value"),
    ({"seed": 0.5}, "seed", "invalid_value"),
    ({"metadata": []}, "metadata", "invalid_value"),
    ({"metadata": {"a": 1}}, "metadata.a", "invalid_value"),
    ({"metadata": {"a": None}}, "metadata.a", "invalid_value"),
    ({"metadata": {"a": "x" * 513}}, "metadata.a", "invalid_value"),
    ({"metadata": {"a" * 65: "x"}}, "metadata", "invalid_value"),
    ({"metadata": {str(n): "" for n in range(17)}}, "metadata", "invalid_value"),
    ({"metadata": {"a": "\0"}}, "metadata.a", "invalid_value"),
    ({"metadata": {"a\0": ""}}, "metadata", "invalid_value"),
    ({"metadata": {"a\udfff": ""}}, "metadata", "invalid_value"),
    ({"user": 5}, "user", "invalid_value"),
    ({"safety_identifier": "x" * 129}, "safety_identifier", "invalid_value"),
    ({"prompt_cache_key": "x" * 257}, "prompt_cache_key", "invalid_value"),
    ({"prompt_cache_retention": "1h"}, "prompt_cache_retention", "invalid_value"),
    ({"prompt_cache_options": {"mode": "off"}}, "prompt_cache_options.mode", "invalid_value"),
    ({"prompt_cache_options": {"ttl": "1h"}}, "prompt_cache_options.ttl", "invalid_value"),
    ({"prompt_cache_options": {"prewarm": True}}, "prompt_cache_options.prewarm", "unsupported_parameter"),
    ({"prompt_cache_options": {"tll": "30m"}}, "prompt_cache_options.tll", "unknown_parameter"),
    ({"prompt_cache_options": "24h"}, "prompt_cache_options", "invalid_value"),
    ({"max_tool_calls": 0}, "max_tool_calls", "invalid_value"),
    ({"service_tier": "flex"}, "service_tier", "invalid_value"),
    ({"service_tier": []}, "service_tier", "invalid_value"),
    ({"client_metadata": {"a": 1}}, "client_metadata.a", "invalid_value"),
    ({"client_metadata": {str(n): "" for n in range(257)}}, "client_metadata", "invalid_value"),
    ({"stream_options": {"include_usage": True}}, "stream_options.include_usage", "unknown_parameter"),
    ({"stream_options": {"include_obfuscation": 1}}, "stream_options.include_obfuscation", "invalid_value"),
    ({"parallel_tool_calls": "no"}, "parallel_tool_calls", "invalid_value"),
    ({"include": ["message.outputtext.logprobs"]}, "include[0]", "invalid_value"),
    ({"include": "all"}, "include", "invalid_value"),
    ({"truncation": "none"}, "truncation", "invalid_value"),
    ({"text": {"format": {"type": "json_schema", "name": "a"}}}, "text.format.schema", "missing_required_parameter"),
    ({"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format.name", "missing_required_parameter"),
    ({"text": {"format": {"type": "json_schema", "name": "a b", "schema": {}}}}, "text.format.name", "invalid_value"),
    ({"text": {"format": {"type": "json_schema", "name": "a", "schema": []}}}, "text.format.schema", "invalid_value"),
    ({"text": {"format": {"type": "json_object", "name": "a"}}}, "text.format.name", "unknown_parameter"),
    ({"text": {"format": {"type": "json_object"}}, "stop": "}"}, "stop", "invalid_value"),
    ({"text": {"format": {}}}, "text.format.type", "missing_required_parameter"),
    ({"text": {"format": "json"}}, "text.format", "invalid_value"),
    ({"text": {"format": {"type": "xml"}}}, "text.format.type", "invalid_value"),
    ({"text": {"format": {"type": []}}}, "text.format.type", "invalid_value"),
    ({"text": {"format": {}}}, "text.format.type", "missing_required_parameter"),
    ({"text": {"format": {"type": "text", "x": 1}}}, "text.format.x", "unknown_parameter"),
    ({"text": {"format": "text"}}, "text.format", "invalid_value"),
    ({"text": {"verbosity": "loud"}}, "text.verbosity", "invalid_value"),
    ({"background": "yes"}, "background", "invalid_value"),
    ({"reasoning": {"effort": "lots"}}, "reasoning.effort", "invalid_value"),
    ({"reasoning": {"context": "none"}}, "reasoning.context", "invalid_value"),
    ({"reasoning": {"mode": "pro"}}, "reasoning.mode", "unsupported_parameter"),
    ({"reasoning": {"mode": 1}}, "reasoning.mode", "invalid_value"),
    ({"reasoning": {"summary": "long"}}, "reasoning.summary", "invalid_value"),
    ({"reasoning": "low"}, "reasoning", "invalid_value"),
    ({"top_logprobs": 21}, "top_logprobs", "invalid_value"),
    ({"top_logprobs": -1}, "top_logprobs", "invalid_value"),
    ({"top_logprobs": True}, "top_logprobs", "invalid_value"),
    ({"conversation": "conv_1", "previous_response_id": "resp_1"}, "conversation", "invalid_value"),
    ({"conversation": {"id": "conv_1", "name": "x"}}, "conversation.name", "unknown_parameter"),
    ({"conversation": {}}, "conversation.id", "missing_required_parameter"),
    ({"conversation": 7}, "conversation", "invalid_value"),
    ({"context_management": [{"type": "summary"}]}, "context_management[0].type", "invalid_value"),
    ({"context_management": [{"type": "compaction", "compact_threshold": 0}]},
     "context_management[0].compact_threshold", "invalid_value"),
    ({"context_management": [{"type": "compaction"}, {"type": "compaction"}]}, "context_management", "invalid_value"),
    ({"temprature": 1}, "temprature", "unknown_parameter"),
    ({"temprature": None}, "temprature", "unknown_parameter"),
    ({"max_tokens": 5}, "max_tokens", "unknown_parameter"),
    ({"": 5}, "", "unknown_parameter"),
    ({"x" * 100_000: 5}, "x" * 64 + "…", "unknown_parameter"),
    *(
        ({name: value}, name, "unsupported_parameter")
        for name, value in {
            "access_programs": {}, "background_options": {}, "image": {}, "moderation": {}, "personality": "x",
            "prompt": {"id": "p"},
        }.items()
    ),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "param", "code"), PARAMETER_ERRORS)
def test_an_error_in_a_parameter_names_it(settings: dict[str, Any], param: str, code: str) -> None:
    """Invalid, unknown and not yet supported parameters have different codes, and are named exactly."""
    error = error_of({"input": "hi", **settings})
    assert (error.param or "", error.code) == (param, code)
    assert len(error.message) < 600


@pytest.mark.parametrize("body", [None, True, 5, "hi", [], [{}], object()])
def test_body_must_be_an_object(body: object) -> None:
    error = error_of(body)
    assert error.param is None
    assert error.message.startswith("The request body ")


@pytest.mark.parametrize(
    ("body", "meant"),
    [
        ({"messages": []}, "input"),
        ({"max_completion_tokens": 1}, "max_output_tokens"),
        ({"response_format": {}}, "text.format"),
        ({"temprature": 1}, "temperature"),
        ({"input": [{"role": "user", "contnt": "a"}]}, "content"),
    ],
)
def test_unknown_names_get_a_suggestion(body: object, meant: str) -> None:
    assert f"did you mean `{meant}`?" in error_of(body).message


def test_the_callers_text_does_not_fill_the_message() -> None:
    """A long value is described, not repeated, as messages end up in logs."""
    assert "x" * 41 not in error_of({"input": "hi", "truncation": "x" * 1000}).message


def test_every_parameter_and_include_value_of_the_sdk_is_known() -> None:
    """A newer SDK that types one more fails here first."""
    assert set(ResponseCreateParamsBase.__annotations__) <= set(CreateResponse.model_fields)
    assert set(get_args(ResponseIncludable)) == set(INCLUDABLE)
    assert set(SdkReasoning.__annotations__) == set(Reasoning.model_fields)
    assert set(SdkPromptCacheOptions.__annotations__) == set(PromptCacheOptions.model_fields)


WITHOUT_EFFECT: dict[str, Any] = {
    "tools": [], "tool_choice": "none", "parallel_tool_calls": False, "include": [], "truncation": "disabled",
    "text": {}, "background": False, "reasoning": {}, "top_logprobs": 0, "context_management": [],
    "presence_penalty": 0, "frequency_penalty": 0.0, "service_tier": "auto",
    "stream_options": {"include_obfuscation": False},
}  # fmt: skip


def test_values_without_an_effect_are_accepted() -> None:
    request = parse_create({"input": "hi", **WITHOUT_EFFECT})
    assert request.tool_choice == "none"
    assert request.parallel_tool_calls is False
    assert request.service_tier == "default"
    assert (
        parse_create({"input": "hi", "text": {"format": {"type": "text"}, "verbosity": "low"}}).text.verbosity == "low"
    )
    for name in INCLUDABLE:
        assert parse_create({"input": "hi", "include": [name]}).include == (name,)
    assert parse_create({"input": "hi", "reasoning": {"effort": None, "summary": "auto"}}).reasoning.summary == "auto"


def test_null_equals_absent() -> None:
    """Every known field may be null, even inside objects."""
    nulls = dict.fromkeys(set(CreateResponse.model_fields) - {"input"})
    assert parse_create({"input": "hi", **nulls}) == parse_create({"input": "hi"})
    inner = {"type": None, "id": None, "status": None, "phase": None}
    assert parse_create({"input": [{**user("a"), **inner}]}) == parse_create({"input": [user("a")]})
    assert parse_create({"input": "hi", "text": {"format": None}}) == parse_create({"input": "hi"})


def test_input_may_be_absent_when_a_response_is_continued() -> None:
    assert parse_create({"previous_response_id": "resp_1"}).input == ()
    assert parse_create({"previous_response_id": "resp_1", "input": []}).input == ()


def test_either_of_two_parameters_requests_log_probabilities() -> None:
    assert "0 to 20" in error_of({"input": "hi", "top_logprobs": 21}).message
    assert parse_create({"input": "hi", "top_logprobs": 20}).wants_logprobs
    assert parse_create({"input": "hi", "include": ["message.output_text.logprobs"]}).wants_logprobs
    assert not parse_create({"input": "hi", "include": ["reasoning.encrypted_content"]}).wants_logprobs


def test_encrypted_reasoning_is_requested_by_include() -> None:
    assert parse_create({"input": "hi", "include": ["reasoning.encrypted_content"]}).wants_encrypted_reasoning
    assert not parse_create({"input": "hi", "top_logprobs": 1}).wants_encrypted_reasoning


def test_every_effort_and_context_of_the_sdk_is_accepted() -> None:
    for name in ("effort", "context"):
        for value in Reasoning.model_json_schema()["properties"][name]["anyOf"][0]["enum"]:
            request = parse_create({"input": "hi", "reasoning": {name: value, "mode": "standard"}})
            assert request.reasoning.wire()[name] == value
    efforts = get_args(get_args(SdkReasoningEffort)[0])
    assert set(efforts) == set(Reasoning.model_json_schema()["properties"]["effort"]["anyOf"][0]["enum"])


def test_bounds_are_inclusive() -> None:
    request = parse_create({"input": "", "temperature": 2, "top_p": 0, "max_output_tokens": 1, "seed": -(2**63)})
    assert (request.temperature, request.top_p, request.max_output_tokens, request.seed) == (2, 0, 1, -(2**63))
    metadata = {f"{n:064}": "x" * 512 for n in range(16)}
    assert parse_create({"input": "", "metadata": metadata}).metadata == metadata


def test_request_is_frozen() -> None:
    request = parse_create({"input": "hi"})
    with pytest.raises(ValueError, match="frozen"):
        request.model = "other"  # type: ignore[misc]


CLIENTS = json.loads((Path(__file__).parent / "client_bodies.json").read_text())


@pytest.mark.parametrize("name", sorted(CLIENTS))
def test_bodies_of_real_clients_are_understood(name: str) -> None:
    """Their tools are callable; their reasoning and includes are accepted."""
    body = CLIENTS[name]["body"]
    request = parse_create(body)
    kinds = {"function", "custom"}
    within = [one for tool in body.get("tools", []) for one in tool.get("tools", [tool])]
    assert [tool.name for tool in request.offered_tools] == [one["name"] for one in within if one["type"] in kinds]
    assert all(tool.enforced for tool in request.offered_tools if not tool.custom)


def test_a_request_has_a_json_schema() -> None:
    """The OpenAPI document is generated from these types."""
    assert CreateResponse.model_json_schema()["properties"].keys() == CreateResponse.model_fields.keys()


SCHEMA = {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"], "additionalProperties": False}


def format_of(wire: dict[str, Any]) -> Any:
    return parse_create({"input": "a", "text": {"format": wire}}).text.format


def test_plain_text_needs_no_format() -> None:
    plain = format_of({"type": "text"})
    assert (plain.wire(), plain.instruction, plain.constraint) == ({"type": "text"}, "", None)


def test_a_json_object_is_described_and_enforced() -> None:
    found = format_of({"type": "json_object"})
    assert found.wire() == {"type": "json_object"}
    assert "JSON object" in found.instruction
    assert (found.constraint.kind, found.constraint.text) == ("json_object", "")


def test_a_schema_is_echoed_described_and_enforced() -> None:
    wire = {"type": "json_schema", "name": "n", "description": "What it is.", "schema": SCHEMA, "strict": True}
    found = format_of(wire)
    assert found.wire() == wire
    assert found.instruction.startswith("Answer with JSON")
    assert " It is: What it is.\n" in found.instruction
    assert found.constraint.kind == "json_schema"
    assert '"a"' in found.constraint.text
    assert " It is: " not in format_of({"type": "json_schema", "name": "n", "schema": SCHEMA}).instruction
