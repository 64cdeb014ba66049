"""Structured output through the real SDK, in both shapes: twenty kinds of schemas, parsed and streamed."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

import jsonschema
import pytest
from openai import BadRequestError, InternalServerError
from pydantic import BaseModel, Field

from tests.live.server import LiveServer

MODEL = "smollm2-135m"


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Size(Enum):
    SMALL = 1
    LARGE = 2


class Address(BaseModel):
    street: str
    number: int | None


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    good: bool


class Person(BaseModel):
    name: str
    address: Address


class Node(BaseModel):
    value: int
    children: list["Node"]


class Linked(BaseModel):
    value: str
    next: "Linked | None"


def model(name: str, **fields: Any) -> type[BaseModel]:
    """A pydantic model with these fields."""
    return type(name, (BaseModel,), {"__annotations__": fields, "__module__": __name__})


PYDANTIC: list[type[BaseModel]] = [
    model("Text", text=str),
    model("Numbers", whole=int, part=float, yes=bool, nothing=None),
    model("Optional", note=str | None, count=int | None),
    model("Chosen", colour=Colour, size=Size, word=Literal["a", "b"]),
    model("One", only=Literal["this"]),
    model("Listed", tags=list[str], pairs=list[list[int]]),
    Person,
    model("Shared", home=Address, work=Address),
    model("Several", people=list[Person]),
    model("Union", pet=Cat | Dog),
    model("Mixed", value=int | str | list[bool]),
    Node,
    Linked,
    model("Bounded", age=Annotated[int, Field(ge=0, le=130)], share=Annotated[float, Field(gt=0, lt=1)]),
    model("Lengths", code=Annotated[str, Field(min_length=2, max_length=4)]),
    model("Pattern", plate=Annotated[str, Field(pattern="^[A-Z]{1,3}-[0-9]{1,4}$")]),
    model("Few", items=Annotated[list[int], Field(min_length=2, max_length=3)]),
    model("Formats", day=date, at=datetime, id=UUID),
    model("Described", text=Annotated[str, Field(description="A sentence.", examples=["Hi."])]),
    model("Empty"),
]
ZOD: list[dict[str, Any]] = [
    {"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}}, "required": ["at"]},
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"v": {"type": ["string", "null"]}, "n": {"type": "integer", "minimum": -9007199254740991}},
        "required": ["v", "n"],
        "additionalProperties": False,
    },
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "shape": {
                "oneOf": [
                    {"type": "object", "properties": {"t": {"const": "a"}, "r": {"type": "number"}}, "required": ["t"]},
                    {"type": "object", "properties": {"t": {"const": "b"}}, "required": ["t"]},
                ]
            },
            "record": {"type": "object", "propertyNames": {}, "additionalProperties": {"type": "number"}},
            "tuple": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]},
        },
        "required": ["shape", "tuple"],
    },
    {"type": "object", "properties": {"d": {"type": "object", "additionalProperties": {"type": "integer"}}}},
    {"type": "object", "patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}]},
    {"type": "array", "items": {"enum": ["a", 1, None, True]}, "minItems": 1},
]
del ZOD[2]["properties"]["record"]["propertyNames"]  # Zod writes it, but it can't be enforced, as tested below


def json_format(schema: Any, **more: Any) -> dict[str, Any]:
    return {"format": {"type": "json_schema", "name": "answer", "schema": schema, **more}}


@pytest.mark.parametrize("said", ["", "Tell me all about it.", '{"x": [1, "two"]}'], ids=["nothing", "text", "json"])
@pytest.mark.parametrize("kind", PYDANTIC, ids=lambda kind: kind.__name__)
def test_pydantic_models_parse(server: LiveServer, kind: type[BaseModel], said: str) -> None:
    """Whatever the script says, the SDK gets an object of the given class."""
    response = server.client().responses.parse(model=MODEL, input=f"[[say: {said}]]", text_format=kind)
    assert response.status == "completed"
    assert isinstance(response.output_parsed, kind)


@pytest.mark.parametrize("kind", [Person, Node, PYDANTIC[9]], ids=lambda kind: kind.__name__)
def test_a_stream_is_live_and_parses(server: LiveServer, kind: type[BaseModel]) -> None:
    """Deltas come token by token, as for free text."""
    said = "Anna and her very long name"
    with server.client().responses.stream(
        model=MODEL, input=f"[[slow: 0.01]][[say: {said}]]", text_format=kind
    ) as stream:
        events = list(stream)
        final = stream.get_final_response()
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert len(deltas) > 3
    assert "".join(deltas) == final.output_text
    assert isinstance(final.output_parsed, kind)
    stored = server.client().responses.retrieve(final.id)
    assert (stored.output_text, stored.status) == (final.output_text, "completed")


@pytest.mark.parametrize("schema", ZOD, ids=str)
@pytest.mark.parametrize("strict", [False, None])
def test_schemas_that_are_not_strict_are_enforced_too(server: LiveServer, schema: Any, strict: bool | None) -> None:
    text: Any = json_format(schema, strict=strict)
    response = server.client().responses.create(model=MODEL, input="[[say: -12.5 xyz]]", text=text)
    assert response.status == "completed"
    jsonschema.Draft202012Validator(schema).validate(json.loads(response.output_text))


def test_scripted_text_is_kept_where_it_matches(server: LiveServer) -> None:
    said = '{"name": "Zoë", "address": {"street": "Main St", "number": 7}}'
    response = server.client().responses.parse(model=MODEL, input=f"[[say: {said}]]", text_format=Person)
    assert response.output_text == said


def test_any_json_object(server: LiveServer) -> None:
    text: Any = {"format": {"type": "json_object"}}
    response = server.client().responses.create(model=MODEL, input='[[say: {"a": [1, 2]} and more]]', text=text)
    assert json.loads(response.output_text) == {"a": [1, 2]}
    other = server.client().responses.create(model=MODEL, input="no JSON at all", text=text)
    assert isinstance(json.loads(other.output_text), dict)


def test_the_format_is_echoed(server: LiveServer) -> None:
    schema = {"type": "object", "properties": {"b": {"type": "null"}, "a": {"type": "null"}}}
    client = server.client()
    whole: Any = json_format(schema, description="Nothing.")
    for text, wanted in [
        (whole, {**whole["format"], "strict": False}),
        (json_format(schema, strict=None), {**json_format(schema)["format"], "description": None, "strict": False}),
        ({"format": {"type": "json_object"}}, {"type": "json_object"}),
        ({"format": {"type": "text"}}, {"type": "text"}),
        ({}, {"type": "text"}),
    ]:
        response = client.responses.create(model=MODEL, input="hi", text=text)
        stored = client.responses.retrieve(response.id)
        assert response.to_dict()["text"] == stored.to_dict()["text"] == {"format": wanted, "verbosity": "medium"}


def test_a_cut_answer_is_incomplete(server: LiveServer) -> None:
    text: Any = json_format({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})
    response = server.client().responses.create(
        model=MODEL, input="[[say: a long text that never gets there]]", text=text, max_output_tokens=8
    )
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("schema", "strict", "param"),
    [
        ({"type": "object", "properties": {"x": {"type": "notatype"}}}, False, "text.format.schema.properties.x.type"),
        (
            {"type": "object", "properties": {"x": {"type": "string", "pattern": "("}}},
            False,
            "text.format.schema.properties.x.pattern",
        ),
        ({"type": "array", "uniqueItems": True}, False, "text.format.schema.uniqueItems"),
        ({"$ref": "http://127.0.0.1:1/schema.json"}, False, "text.format.schema.$ref"),
        ({"type": "object", "properties": {"x": {}}}, True, "text.format.schema.additionalProperties"),
        ({"type": "object", "description": "x" * 70_000}, False, "text.format.schema"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_schema_that_cannot_be_enforced_is_refused_by_its_place(
    server: LiveServer, schema: Any, strict: bool, param: str, stream: bool
) -> None:
    text: Any = json_format(schema, strict=strict)
    with pytest.raises(BadRequestError) as refused:
        server.client().responses.create(model=MODEL, input="hi", text=text, stream=stream)
    assert (refused.value.param, refused.value.code) == (param, "invalid_value")
    with pytest.raises(BadRequestError) as counted:
        server.client().responses.input_tokens.count(model=MODEL, input="hi", text=text)
    assert counted.value.param == param


def test_stop_strings_cannot_cut_json(server: LiveServer) -> None:
    text: Any = {"format": {"type": "json_object"}}
    with pytest.raises(BadRequestError) as refused:
        server.client().responses.create(model=MODEL, input="hi", text=text, extra_body={"stop": "}"})
    assert refused.value.param == "stop"


def test_an_answer_that_fails_validation_fails(server: LiveServer) -> None:
    """Nested deeper than validation goes: the decoder allows it, the final validation doesn't."""
    said = "[" * 40
    text: Any = json_format({"type": "object", "properties": {"a": {}}, "required": ["a"]})
    asked: dict[str, Any] = {"model": MODEL, "input": f'[[say: {{"a": {said}]]', "text": text}
    with pytest.raises(InternalServerError, match=r"`text\.format`"):
        server.client().responses.create(**asked)
    *_, error, last = server.client().responses.create(stream=True, **asked)
    assert (error.type, last.type, last.response.error.code) == ("error", "response.failed", "server_error")
    assert "generation.invalid_answer" in server.log.read_text()


def test_eight_at_once_beside_free_text(server: LiveServer) -> None:
    def ask(number: int) -> str:
        if number % 2:
            return server.client().responses.create(model=MODEL, input=f"[[tokens: {number + 20}]]").output_text
        kind = PYDANTIC[number % len(PYDANTIC)]
        parsed = server.client().responses.parse(model=MODEL, input=f"[[say: {number}]]", text_format=kind)
        assert isinstance(parsed.output_parsed, kind)
        return parsed.output_text

    server.client()
    with ThreadPoolExecutor(16) as pool:
        texts = list(pool.map(ask, range(32)))
    for number in range(1, 32, 2):
        assert texts[number].split() == [str(word) for word in range(1, number + 21)]
