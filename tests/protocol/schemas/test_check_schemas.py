"""Refusals of tools by the server's settings and by what the decoder can enforce."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from responses_api.errors import InvalidRequest, InvalidValue, UnsupportedParameter
from responses_api.protocol import CreateResponse, parse_create
from responses_api.protocol.schemas.check import enforceable_part
from responses_api.services.admission.check_schemas import check_schemas
from tests.protocol.schemas.test_json_schema import nested
from tests.protocol.test_create_properties import JSON
from tests.schemas import CODEX_PATCH

STRICT: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def check(*tools: Any) -> None:
    check_schemas(parse_create({"input": "hi", "tools": list(tools)}))


def function(parameters: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "function", "name": "f", "parameters": parameters, **fields}


def custom(syntax: str, definition: str) -> dict[str, Any]:
    return {
        "type": "custom",
        "name": "c",
        "format": {"type": "grammar", "syntax": syntax, "definition": definition},
    }


def refused_path(*tools: Any) -> str:
    with pytest.raises(InvalidValue) as caught:
        check(*tools)
    assert f"`{caught.value.param}` " in caught.value.message
    return str(caught.value.param)


def within(inner: Any) -> dict[str, Any]:
    return {**STRICT, "properties": {"city": inner}}


@pytest.mark.parametrize(
    ("parameters", "path"),
    [
        (within({"not": {}}), "properties.city.not"),
        (within({"type": "string", "pattern": "(?=a)b"}), "properties.city.pattern"),
        ({**STRICT, "required": []}, "required"),
        ({**STRICT, "additionalProperties": True}, "additionalProperties"),
        ({"properties": {}}, "type"),
    ],
    ids=str,
)
def test_a_strict_schema_is_enforceable_and_follows_the_rules(parameters: dict[str, Any], path: str) -> None:
    check(function(STRICT, strict=True))
    assert refused_path(function(parameters, strict=True)) == f"tools[0].parameters.{path}"
    check(function(parameters), function(parameters, strict=False, name="g"))


@pytest.mark.parametrize(
    ("inner", "path"),
    [(5, ""), ({"type": "sting"}, ".type"), ({"anyOf": [{"properties": []}]}, ".anyOf[0].properties")],
)
def test_an_invalid_schema_is_refused_in_any_function(inner: Any, path: str) -> None:
    inside = {"type": "namespace", "name": "n", "tools": [function(within(inner))]}
    assert refused_path(function(within(inner))) == f"tools[0].parameters.properties.city{path}"
    assert refused_path(function(STRICT), inside) == f"tools[1].tools[0].parameters.properties.city{path}"


def test_limits_apply_to_any_function(settings: Any) -> None:
    deep = refused_path(function(within(nested(30))))
    assert deep.startswith("tools[0].parameters.properties.city.items.items")
    settings.RESPONSES_SCHEMA_MAX_NODES = 2
    assert refused_path(function(within({"anyOf": [{}]}))) == "tools[0].parameters"
    settings.RESPONSES_SCHEMA_MAX_BYTES = 20
    assert refused_path(function(STRICT)) == "tools[0].parameters"
    assert refused_path(custom("lark", "start: /[a-z]{1,1000}/")) == "tools[0].format.definition"


@pytest.mark.parametrize(
    ("syntax", "definition"),
    [
        ("lark", "a: /a/"),
        ("lark", "start: a"),
        ("lark", "start: /a/\n%ignore /b/"),
        ("regex", "[a"),
        ("regex", "(?=a)b"),
    ],
)
def test_a_grammar_that_cannot_be_enforced_is_refused_with_the_reason(syntax: str, definition: str) -> None:
    assert refused_path(function(STRICT), custom(syntax, definition)) == "tools[1].format.definition"


@pytest.mark.parametrize(
    ("syntax", "definition"), [("lark", CODEX_PATCH), ("regex", "[0-9]{4}-[0-9]{2}"), ("regex", "")]
)
def test_a_grammar_that_can_be_enforced_is_accepted(syntax: str, definition: str) -> None:
    check(custom(syntax, definition), {"type": "custom", "name": "plain"})


def test_a_grammar_whose_rules_are_too_deep_for_the_decoder_is_refused() -> None:
    """It would crash the process: the decoder's stack would overflow."""
    rules = "\n".join(f'r{number}: (("b" (r{number + 1} | "x")?)* "c")+' for number in range(1100))
    assert refused_path(custom("lark", f'start: r0\n{rules}\nr1100: "a"')) == "tools[0].format.definition"
    flat = "\n".join(f'r{number}: "a" // (((( : :' for number in range(400))
    check(custom("lark", f"start: r0\n{flat}"))


def test_all_tools_together_have_a_limit(monkeypatch: Any) -> None:
    wide = {"type": "object", "properties": {f"p{number}": {"type": "null"} for number in range(400)}}
    tools = [{**function(wide), "name": f"f{number}"} for number in range(21)]
    check(*tools[:20])
    assert refused_path(*tools) == "tools"
    monkeypatch.setattr("responses_api.services.admission.check_schemas.MOST_BYTES", 20)
    assert refused_path(function(STRICT)) == "tools"


def test_hosted_tools_are_refused_by_the_setting(settings: Any) -> None:
    tools = [function(STRICT), {"type": "web_search"}]
    check(*tools)
    settings.RESPONSES_HOSTED_TOOLS = "reject"
    with pytest.raises(UnsupportedParameter) as caught:
        check(*tools)
    assert caught.value.param == "tools[1]"


PIECES = (
    'start: ¦a: ¦A: ¦"x"¦"\\¦"¦\\x¦/¦/[a-z]+/¦[¦]¦{¦}¦(¦)¦|¦~¦'
    '%import common.LF¦%¦\n¦i¦"a".."z"¦?¦*¦+¦%json {¦//¦(?i:¦&¦é'
)
LARK = st.lists(st.sampled_from(PIECES.split("¦")), max_size=9).map("".join)
SLOW = hypothesis_settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def answer(tool: dict[str, Any]) -> CreateResponse | InvalidRequest:
    try:
        request = parse_create({"input": "hi", "tools": [tool]})
        check_schemas(request)
    except InvalidRequest as refused:
        return refused
    return request


@SLOW
@given(st.sampled_from(["lark", "regex"]), LARK)
def test_any_grammar_is_accepted_or_refused(syntax: str, definition: str) -> None:
    result = answer(custom(syntax, definition))
    assert isinstance(result, CreateResponse) or result.param == "tools[0].format.definition"


@SLOW
@given(
    st.dictionaries(st.sampled_from(["properties", "items", "anyOf", "$ref", "required", "not", "pattern"]), JSON),
    st.booleans(),
)
def test_any_parameters_are_accepted_or_refused(parameters: dict[str, Any], strict: bool) -> None:
    """Accepted ones are enforced or not; strict ones always are."""
    result = answer(function(parameters, strict=strict))
    if isinstance(result, InvalidRequest):
        assert str(result.param).startswith("tools[0].parameters")
    else:
        [tool] = result.callable_tools
        assert tool.enforced or not strict


OPEN_END = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("inner", "part"),
    [
        ({"type": "string"}, {"type": "string"}),
        ({"type": "integer", "not": {}}, {"type": "integer"}),
        ({"type": "integer", "minimum": 0, "maximum": 2**63 - 1}, {"type": "integer", "minimum": 0}),
        ({"type": "integer", "multipleOf": 10_001}, {"type": "integer"}),
        ({"type": "string", "format": "emial", "minLength": 1}, {"type": "string", "minLength": 1}),
        ({"type": "string", "pattern": "(?=a)b"}, {"type": "string"}),
        ({"type": "integer", "enum": [1234567890123456789]}, {"type": "integer"}),
        (
            {"type": "array", "items": {"type": "null", "x-a": 1}, "uniqueItems": True},
            {"type": "array", "items": {"type": "null"}},
        ),
        (
            {"type": "array", "items": {"type": "string", "pattern": "(?=a)b"}},
            {"type": "array", "items": {"type": "string"}},
        ),
        ({"$ref": "https://example.com"}, {}),
        ({"$ref": "#/properties/city"}, {}),
    ],
    ids=str,
)
def test_only_unenforceable_parts_of_a_schema_that_is_not_strict_are_dropped(inner: Any, part: Any) -> None:
    """The other properties stay, and so does the surrounding schema."""
    result = enforceable_part(within(inner))
    assert result == {**STRICT, "properties": {"city": part}}
    assert enforceable_part(within(inner)) is result


def test_of_a_schema_without_a_finite_value_nothing_is_enforced() -> None:
    assert enforceable_part(OPEN_END) is None


def test_the_model_reads_the_schema_that_was_sent() -> None:
    parameters = within({"type": "integer", "maximum": 2**63 - 1, "description": "a count"})
    request = parse_create({"input": "hi", "tools": [function(parameters)]})
    [tool] = request.callable_tools
    assert tool.schema == parameters
    assert tool.enforced_schema == within({"type": "integer"})
