"""Every field of the OpenAPI document is tried."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from responses_api.api.openapi.document import openapi_document
from responses_api.chat import translate
from responses_api.errors import ApiError
from responses_api.protocol import parse_create
from tests.hostile.requests.corpus import HostileRequest, body_of, corpus
from tests.hostile.requests.locations import BODIES, PLACEHOLDER, Locations
from tests.hostile.requests.schema_shapes import GRAMMARS, SCHEMAS
from tests.hostile.requests.shapes import DEEP, NUMBERS, TEXTS, WIDE

from . import KIB

SIZE = 16 * KIB
LONG = {"letters", "digits"}
PARSERS: dict[str, Callable[[Any], object]] = {"CreateResponse": parse_create, "CreateChatCompletion": translate}
NEEDS_MORE = {"tool_choice.namespace", "logit_bias{}", "messages"}
"""Locations whose valid values depend on others: a declared namespace, the id of a token; and a message."""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return openapi_document(version="1")


@pytest.fixture(scope="module")
def requests(document: dict[str, Any]) -> list[HostileRequest]:
    return corpus(document)


def reachable(document: dict[str, Any], name: str, observations: set[str]) -> Iterator[tuple[str, str]]:
    """The properties of a component and of those that it refers to."""
    if name in observations:
        return
    observations.add(name)
    component = document["components"]["schemas"][name]
    yield from ((name, one) for one in component.get("properties", ()))
    for reference in references(component):
        yield from reachable(document, reference, observations)


def references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict) and "$ref" in schema:
        yield schema["$ref"].rpartition("/")[2]
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from references(inner)


def test_every_property_of_every_route_is_tried(document: dict[str, Any], requests: list[HostileRequest]) -> None:
    """With long, deep and wide values, in every route whose body may contain it."""
    tried: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for one in requests:
        if one.component_property:
            tried[one.route, *one.component_property].add(one.shape)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if not (body := body_of(operation)):
                continue
            for owner, name in reachable(document, body, set()):
                shapes = tried[f"{method.upper()} {path}", owner, name]
                assert shapes >= LONG | {shape.name for shape in (*DEEP, *WIDE)}, (method, path, owner, name)


def test_every_route_parameter_and_header_is_tried(document: dict[str, Any], requests: list[HostileRequest]) -> None:
    locations = defaultdict(set)
    for one in requests:
        locations[one.route].add(one.location)
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            tried = locations[f"{method.upper()} {path}"]
            parameters = {f"{one['in']} {one['name']}" for one in operation.get("parameters", ())}
            assert parameters | {"header Authorization", "header many headers"} <= tried
            assert ("the body" in tried) == bool(body_of(operation))


@pytest.mark.parametrize("body", BODIES)
def test_the_body_around_a_location_is_valid(document: dict[str, Any], body: str) -> None:
    """Otherwise a request would be refused before the location is read."""
    locations = Locations(document)
    for location in locations.of(body):
        before, after = location.split()
        assert json.loads(before + json.dumps(PLACEHOLDER).encode() + after) == location.template
        if body in PARSERS and location.path not in NEEDS_MORE:
            value = "a" if location.name.endswith("{}") else locations.valid(location.schema, location.name)
            try:
                PARSERS[body](json.loads(before + json.dumps(value).encode() + after))
            except ApiError as error:
                pytest.fail(f"{location.owner} {location.path}: {error}")


@pytest.mark.parametrize(
    "shape", [*TEXTS, *NUMBERS[1:2], *DEEP, *WIDE, *SCHEMAS, *GRAMMARS], ids=lambda shape: shape.name
)
def test_a_shape_is_json_of_its_size(shape: Any) -> None:
    """It has about this size, unless the size is a number in it."""
    text = shape.write(SIZE)
    if not shape.name.startswith("schema") or "9" * 5000 not in text.decode():
        try:
            json.loads(text, parse_int=float)
        except RecursionError:
            assert "deep" in shape.name
    if "of this size" not in shape.name and "doubling" not in shape.name:
        assert SIZE / 2 < len(text) < SIZE * 2


def test_names_differ(requests: list[HostileRequest]) -> None:
    """Measurements are identified by name."""
    duplicates = [name for name, count in Counter(one.name for one in requests).items() if count > 1]
    assert not duplicates, duplicates[:5]
