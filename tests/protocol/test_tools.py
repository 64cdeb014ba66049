"""Tools and tool choice: what is accepted, echoed and callable, and the single error otherwise."""

from typing import Any, get_args, get_type_hints

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.responses import Response, ToolChoiceTypesParam
from openai.types.responses.tool_param import ToolParam

from inference.calls import CustomFormat
from responses_api.errors import ApiError
from responses_api.protocol import CreateResponse, parse_create
from responses_api.protocol.tools.choice import HOSTED_CHOICES
from responses_api.protocol.tools.declared import HOSTED_TYPES, TYPES
from tests.protocol.references import open_responses_errors
from tests.protocol.test_create import error_of
from tests.protocol.test_create_properties import JSON, TEXT, answer
from tests.protocol.test_response import response

CITY: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: dict[str, Any] = {"type": "function", "name": "get_weather", "parameters": CITY}
GRAMMAR: dict[str, Any] = {"type": "grammar", "syntax": "lark", "definition": "start: /[a-z]+/"}
PATCH: dict[str, Any] = {"type": "custom", "name": "apply_patch", "format": GRAMMAR}
CRM: dict[str, Any] = {
    "type": "namespace",
    "name": "crm",
    "description": "Customers.",
    "tools": [{"type": "function", "name": "find"}, {"type": "custom", "name": "note"}],
}
SHOP: dict[str, Any] = {"type": "namespace", "name": "shop", "tools": [{"type": "function", "name": "find"}]}
SEARCH: dict[str, Any] = {"type": "web_search", "external_web_access": True, "filters": None}
ALL = [WEATHER, PATCH, CRM, SEARCH]


def request(tools: list[Any], **body: Any) -> CreateResponse:
    return parse_create({"input": "hi", "tools": tools, **body})


def named(kind: str, name: str, namespace: str | None = None) -> dict[str, Any]:
    return {"type": kind, "name": name, **({"namespace": namespace} if namespace else {})}


def allowed(mode: str, *tools: dict[str, Any]) -> dict[str, Any]:
    return {"type": "allowed_tools", "mode": mode, "tools": list(tools)}


def test_every_type_of_the_sdk_is_known() -> None:
    """A newer SDK that types one more fails here first."""
    tools = {name for branch in get_args(ToolParam) for name in get_args(get_type_hints(branch)["type"])}
    assert tools == set(TYPES)
    assert set(get_args(get_type_hints(ToolChoiceTypesParam)["type"])) <= set(HOSTED_CHOICES)


def test_the_model_gets_functions_and_custom_tools_out_of_their_namespaces() -> None:
    tools = request(ALL).callable_tools
    assert [tool.shown for tool in tools] == ["get_weather", "apply_patch", "crm::find", "crm::note"]
    weather, patch, find, note = tools
    assert weather.enforced
    assert weather.parameters == CITY
    assert weather.enforced_schema == {**CITY, "additionalProperties": False}
    assert patch.custom
    assert patch.format == CustomFormat(syntax="lark", definition="start: /[a-z]+/")
    assert find.enforced
    assert find.enforced_schema["additionalProperties"] is False
    assert (note.custom, note.format) == (True, None)


def test_a_schema_is_shown_whole_and_enforced_as_far_as_possible() -> None:
    loose = {"type": "object", "properties": {"x": {"not": {"type": "string"}}}}
    untyped = {"properties": {"x": {"oneOf": [{"const": 1}, {"const": 2}]}}}
    first, second = request(
        [{**WEATHER, "parameters": loose}, {"type": "function", "name": "f", "parameters": untyped}]
    ).callable_tools
    assert (first.enforced, first.parameters) == (True, loose)
    assert first.enforced_schema == {"type": "object", "properties": {"x": {}}, "additionalProperties": False}
    assert second.enforced
    assert second.parameters["type"] == "object"


@pytest.mark.parametrize(
    ("choice", "shown", "offered", "must"),
    [
        (None, 4, [0, 1, 2, 3], False),
        ("auto", 4, [0, 1, 2, 3], False),
        ("none", 0, [], False),
        ("required", 4, [0, 1, 2, 3], True),
        (named("function", "get_weather"), 4, [0], True),
        (named("custom", "apply_patch"), 4, [1], True),
        (named("function", "find"), 4, [2], True),
        (named("function", "find", "crm"), 4, [2], True),
        (named("custom", "note", "crm"), 4, [3], True),
        (allowed("auto"), 4, [], False),
        (allowed("auto", named("custom", "note"), {"type": "web_search"}, named("function", "find")), 4, [2, 3], False),
        (allowed("required", named("function", "get_weather")), 4, [0], True),
    ],
    ids=str,
)
def test_the_choice_decides_what_is_shown_and_what_may_be_called(
    choice: object, shown: int, offered: list[int], must: bool
) -> None:
    made = request(ALL, tool_choice=choice)
    assert len(made.shown_tools) == shown
    assert made.offered_tools == tuple(made.callable_tools[number] for number in offered)
    assert made.must_call is must
    echo = response(tools=ALL, tool_choice=choice)["tool_choice"]
    assert echo == (choice or "auto")


def test_a_tool_outside_of_all_namespaces_comes_before_those_within() -> None:
    made = request([CRM, SHOP, {"type": "function", "name": "find"}], tool_choice=named("function", "find"))
    assert [tool.shown for tool in made.offered_tools] == ["find"]


def test_effective_values_are_echoed() -> None:
    options = {"allowed_callers": ["direct"], "defer_loading": True, "async": False}
    full = response(
        tools=[
            {**WEATHER, "strict": None, "description": None},
            {**WEATHER, "name": "f", "strict": True, **options, "output_schema": {"type": "string"}},
            {"type": "custom", "name": "c"},
            {**PATCH, **options},
            SHOP,
            SEARCH,
        ]
    )
    echo = {"type": "function", "name": "get_weather", "description": None, "parameters": CITY, "strict": False}
    assert full["tools"] == [
        echo,
        {**echo, "name": "f", "strict": True, **options, "output_schema": {"type": "string"}},
        {"type": "custom", "name": "c", "description": None, "format": {"type": "text"}},
        {**PATCH, "description": None, **options},
        {**SHOP, "description": "", "tools": [{**echo, "name": "find", "parameters": None}]},
        SEARCH,
    ]
    Response.model_validate(full)
    assert open_responses_errors("ResponseResource", response(tools=[WEATHER], tool_choice="required")) == []


@pytest.mark.parametrize("kind", HOSTED_TYPES)
def test_hosted_tools_are_echoed_as_sent_and_never_callable(kind: str) -> None:
    tool = {"type": kind, "anything": [None, {"x": 1}], "name": 5}
    made = request([tool], tool_choice=allowed("auto", tool))
    assert made.callable_tools == made.offered_tools == ()
    assert [one.wire() for one in made.tools] == [tool]


ERRORS: list[tuple[dict[str, Any], str, str]] = [
    ({"tools": {}}, "tools", "invalid_value"),
    ({"tools": ["f"]}, "tools[0]", "invalid_value"),
    ({"tools": [None]}, "tools[0]", "invalid_value"),
    ({"tools": [{"name": "f"}]}, "tools[0].type", "missing_required_parameter"),
    ({"tools": [{"type": "functoin"}]}, "tools[0].type", "invalid_value"),
    ({"tools": [{"type": ["function"]}]}, "tools[0].type", "invalid_value"),
    ({"tools": [{"type": "function"}]}, "tools[0].name", "missing_required_parameter"),
    ({"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name", "invalid_value"),
    ({"tools": [{"type": "function", "name": "x" * 65}]}, "tools[0].name", "invalid_value"),
    ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools[0].function", "unknown_parameter"),
    ({"tools": [{**WEATHER, "parameters": []}]}, "tools[0].parameters", "invalid_value"),
    ({"tools": [{**WEATHER, "parameters": {"type": "array"}}]}, "tools[0].parameters.type", "invalid_value"),
    ({"tools": [{**WEATHER, "parameters": {"type": None}}]}, "tools[0].parameters.type", "invalid_value"),
    ({"tools": [{**WEATHER, "strict": "yes"}]}, "tools[0].strict", "invalid_value"),
    ({"tools": [{**WEATHER, "async": 1}]}, "tools[0].async", "invalid_value"),
    ({"tools": [{**WEATHER, "allowed_callers": ["me"]}]}, "tools[0].allowed_callers[0]", "invalid_value"),
    ({"tools": [{**WEATHER, "output_schema": 1}]}, "tools[0].output_schema", "invalid_value"),
    ({"tools": [{**PATCH, "format": "text"}]}, "tools[0].format", "invalid_value"),
    ({"tools": [{**PATCH, "format": {"type": "json"}}]}, "tools[0].format.type", "invalid_value"),
    ({"tools": [{**PATCH, "format": {**GRAMMAR, "syntax": "ebnf"}}]}, "tools[0].format.syntax", "invalid_value"),
    ({"tools": [{**PATCH, "parameters": {}}]}, "tools[0].parameters", "unknown_parameter"),
    ({"tools": [{**CRM, "name": "a.b"}]}, "tools[0].name", "invalid_value"),
    ({"tools": [WEATHER, {**CRM, "tools": [WEATHER, SEARCH]}]}, "tools[1].tools[1].type", "invalid_value"),
    ({"tools": [CRM, WEATHER, {**PATCH, "name": "get_weather"}]}, "tools[2].name", "invalid_value"),
    ({"tools": [CRM, SHOP, {**SHOP, "name": "crm"}]}, "tools[2].tools[0].name", "invalid_value"),
    ({"tools": [SEARCH] * 129}, "tools", "invalid_value"),
    ({"tools": [*[SEARCH] * 127, CRM]}, "tools", "invalid_value"),
    ({"tool_choice": "any"}, "tool_choice", "invalid_value"),
    ({"tool_choice": ["auto"]}, "tool_choice", "invalid_value"),
    ({"tool_choice": "required"}, "tool_choice", "invalid_value"),
    ({"tool_choice": "required", "tools": [SEARCH]}, "tool_choice", "invalid_value"),
    ({"tool_choice": {}}, "tool_choice.type", "missing_required_parameter"),
    ({"tool_choice": {"type": "fuction"}}, "tool_choice.type", "invalid_value"),
    ({"tool_choice": {"type": {}}}, "tool_choice.type", "invalid_value"),
    ({"tool_choice": {"type": "function"}}, "tool_choice.name", "missing_required_parameter"),
    ({"tool_choice": named("function", "get_wether"), "tools": ALL}, "tool_choice.name", "invalid_value"),
    ({"tool_choice": named("custom", "get_weather"), "tools": ALL}, "tool_choice.name", "invalid_value"),
    ({"tool_choice": named("function", "get_weather", "crm"), "tools": ALL}, "tool_choice.name", "invalid_value"),
    ({"tool_choice": named("function", "find", "cmr"), "tools": ALL}, "tool_choice.namespace", "invalid_value"),
    ({"tool_choice": named("function", "find"), "tools": [CRM, SHOP]}, "tool_choice.name", "invalid_value"),
    ({"tool_choice": allowed("none"), "tools": ALL}, "tool_choice.mode", "invalid_value"),
    ({"tool_choice": allowed("required"), "tools": ALL}, "tool_choice", "invalid_value"),
    ({"tool_choice": allowed("required", SEARCH), "tools": ALL}, "tool_choice", "invalid_value"),
    ({"tool_choice": allowed("auto", SEARCH, named("function", "f")), "tools": ALL},
     "tool_choice.tools[1].name", "invalid_value"),
    ({"tool_choice": allowed("auto", {"type": "x"}), "tools": ALL}, "tool_choice.tools[0].type", "invalid_value"),
    *(({"tool_choice": {"type": kind}, "tools": ALL}, "tool_choice.type", "unsupported_parameter")
      for kind in HOSTED_CHOICES),
    ({"stop": ["x"], "tools": [WEATHER]}, "stop", "invalid_value"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "param", "code"), ERRORS, ids=lambda value: str(value)[:60])
def test_an_error_names_the_innermost_place(body: dict[str, Any], param: str, code: str) -> None:
    error = error_of({"input": "hi", **body})
    assert (error.param, error.code) == (param, code)
    assert f"`{param}`" in error.message
    assert len(error.message) < 600


@pytest.mark.parametrize(
    ("body", "meant"),
    [
        ({"tools": [{"type": "functoin"}]}, "function"),
        ({"tools": [{"type": "web_serch"}]}, "web_search"),
        ({"tool_choice": "requird"}, "required"),
        ({"tool_choice": {"type": "alowed_tools"}}, "allowed_tools"),
        ({"tool_choice": named("function", "get_wether"), "tools": ALL}, "get_weather"),
        ({"tool_choice": named("function", "find", "shp"), "tools": [SHOP]}, "shop"),
    ],
)
def test_the_closest_name_is_suggested(body: dict[str, Any], meant: str) -> None:
    assert f"did you mean '{meant}'?" in error_of({"input": "hi", **body}).message


def test_the_largest_number_of_tools() -> None:
    many = [{"type": "function", "name": f"f{number}"} for number in range(128)]
    assert len(request(many).callable_tools) == 128
    assert len(request([{**CRM, "tools": many}]).callable_tools) == 128


def test_stop_strings_are_allowed_with_tools_that_cannot_be_called() -> None:
    assert request([SEARCH], stop="x").stop_strings == ("x",)
    assert request([WEATHER], stop="x", tool_choice="none").stop_strings == ("x",)
    assert request([WEATHER], stop="x", tool_choice=allowed("auto")).stop_strings == ("x",)


NAMES = st.sampled_from(["f", "g", "a b", "", "x" * 65])
KINDS = st.sampled_from([*TYPES, "allowed_tools", "x"])
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "name": NAMES | JSON,
    "description": TEXT | JSON,
    "parameters": st.dictionaries(st.sampled_from(["type", "properties", "items", "$ref"]), JSON, max_size=3) | JSON,
    "strict": st.booleans() | JSON,
    "format": st.sampled_from([GRAMMAR, {"type": "text"}]) | JSON,
    "namespace": NAMES | JSON,
    "mode": st.sampled_from(["auto", "required"]) | JSON,
    "async": JSON,
    "allowed_callers": JSON,
    "extra": JSON,
}
LEAVES = st.fixed_dictionaries({}, optional={"type": KINDS | JSON, **FIELDS})
OBJECTS = st.fixed_dictionaries(
    {}, optional={"type": KINDS | JSON, "tools": st.lists(LEAVES | JSON, max_size=3) | JSON, **FIELDS}
)
WELL_FORMED = st.sampled_from([*ALL, SHOP])


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(WELL_FORMED | OBJECTS | JSON, max_size=4) | JSON,
    st.sampled_from(["auto", "none", "required"]) | OBJECTS | JSON,
)
def test_any_json_as_tools_and_choice_is_a_request_or_one_error(tools: Any, choice: Any) -> None:
    made = answer({"input": "hi", "tools": tools, "tool_choice": choice})
    if isinstance(made, ApiError):
        assert made.status == 400
        assert b"\\u0000" not in orjson.dumps(made.envelope())
        return
    assert all(tool in made.shown_tools for tool in made.offered_tools)
    assert made.offered_tools or not made.must_call
    orjson.dumps(response(tools=tools, tool_choice=choice))


def test_the_model_sees_the_description_of_a_namespace() -> None:
    member = {"type": "function", "name": "find", "description": "Finds one."}
    tools = [{"type": "namespace", "name": "crm", "description": "Customers.", "tools": [member]}]
    (tool,) = parse_create({"input": "hi", "tools": tools}).callable_tools
    assert tool.description == "Customers. Finds one."
