"""No field can be forgotten: each that the OpenAPI document has is tried."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from responses_api.api.openapi.document import openapi_document
from responses_api.errors import ApiError
from responses_api.protocol import parse_create
from tests.hostile.requests.corpus import Hostile, body_of, corpus
from tests.hostile.requests.places import HOLE, WHOLE, Places
from tests.hostile.requests.schema_shapes import GRAMMARS, SCHEMAS
from tests.hostile.requests.shapes import DEEP, NUMBERS, TEXTS, WIDE

from . import KIB

SIZE = 16 * KIB
LONG = {"letters", "digits"}
NEEDS_MORE = {"tool_choice.namespace", "logit_bias{}"}
"""A declared namespace; a number under a token's id."""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi_document(version="1")


@pytest.fixture(scope="module")
def requests(document: dict[str, Any]) -> list[Hostile]:
    return corpus(document)


def reachable(document: dict[str, Any], name: str, seen: set[str]) -> Iterator[tuple[str, str]]:
    """The properties of a component and of those that it refers to."""
    if name in seen:
        return
    seen.add(name)
    component = document["components"]["schemas"][name]
    yield from ((name, one) for one in component.get("properties", ()))
    for reference in references(component):
        yield from reachable(document, reference, seen)


def references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict) and "$ref" in schema:
        yield schema["$ref"].rpartition("/")[2]
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from references(inner)


def test_every_property_of_every_route_is_tried(document: dict[str, Any], requests: list[Hostile]) -> None:
    """Made long, deep and wide, in every route whose body can have it."""
    tried: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for one in requests:
        if one.about:
            tried[one.route, *one.about].add(one.shape)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if not (body := body_of(operation)):
                continue
            for owner, name in reachable(document, body, set()):
                shapes = tried[f"{method.upper()} {path}", owner, name]
                assert shapes >= LONG | {shape.name for shape in (*DEEP, *WIDE)}, (method, path, owner, name)


def test_every_route_parameter_and_header_is_tried(document: dict[str, Any], requests: list[Hostile]) -> None:
    places = defaultdict(set)
    for one in requests:
        places[one.route].add(one.place)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            tried = places[f"{method.upper()} {path}"]
            parameters = {f"{one['in']} {one['name']}" for one in operation.get("parameters", ())}
            assert parameters | {"header Authorization", "header many headers"} <= tried
            assert ("the body" in tried) == bool(body_of(operation))


@pytest.mark.parametrize("body", WHOLE)
def test_a_place_has_a_valid_rest_around_it(document: dict[str, Any], body: str) -> None:
    """Otherwise a request would be refused before anything looks at the place."""
    places = Places(document)
    for place in places.of(body):
        before, after = place.around()
        assert json.loads(before + json.dumps(HOLE).encode() + after) == place.whole
        if body == "CreateResponse" and place.path not in NEEDS_MORE:
            value = "a" if place.name.endswith("{}") else places.valid(place.schema, place.name)
            try:
                parse_create(json.loads(before + json.dumps(value).encode() + after))
            except ApiError as error:
                pytest.fail(f"{place.owner} {place.path}: {error}")


@pytest.mark.parametrize(
    "shape", [*TEXTS, *NUMBERS[1:2], *DEEP, *WIDE, *SCHEMAS, *GRAMMARS], ids=lambda shape: shape.name
)
def test_a_shape_is_json_of_its_size(shape: Any) -> None:
    """Of about its size, where it is not a number that has it."""
    text = shape.write(SIZE)
    if not shape.name.startswith("schema") or "9" * 5000 not in text.decode():
        try:
            json.loads(text, parse_int=float)
        except RecursionError:
            assert "deep" in shape.name
    if "of this size" not in shape.name and "doubling" not in shape.name:
        assert SIZE / 2 < len(text) < SIZE * 2


def test_names_differ(requests: list[Hostile]) -> None:
    """Figures are kept by name."""
    doubled = [name for name, count in Counter(one.name for one in requests).items() if count > 1]
    assert not doubled, doubled[:5]
