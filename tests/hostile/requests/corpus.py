"""The hostile requests about the locations of all routes: each location with each suitable shape."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.hostile import KIB, MIB

from .client import Behaviour, Request
from .locations import BODIES, Location, Locations
from .schema_shapes import GRAMMARS, SCHEMAS
from .shapes import ANY, LETTERS, NUMBERS, TEXTS, WIDE, Shape, repeated

MIN_SIZE, MAX_SIZE = 64 * KIB, 64 * MIB - 64 * KIB
COMPILED_MIN_SIZE = 15 * KIB
"""Schemas and grammars are refused beyond 64 KiB."""
MAX_TARGET_SIZE = MIB
HEADERS = (
    "Authorization",
    "X-Api-Key",
    "Host",
    "Origin",
    "Content-Type",
    "Content-Encoding",
    "Accept",
    "Cookie",
    "Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Proto",
    "X-Request-Id",
    "Idempotency-Key",
    "Last-Event-ID",
    "Sec-Fetch-Site",
    "Upgrade",
    "OpenAI-Project",
)
FRAMING = ("Content-Length", "Transfer-Encoding", "Expect")
FRAMING_ROUTES = ("POST /v1/responses", "GET /healthz")
"""The routes to try these on: a server may wait for a body that they announce."""
FREE_SCHEMAS = ("schema", "parameters", "output_schema")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileRequest:
    """One kind of hostile request, of any size from ``min_size`` to ``max_size`` bytes.

    Names in braces in its target are replaced by ids that exist on the server (`StoredIds`).
    """

    route: str
    location: str
    shape: str
    make: Callable[[int], Request]
    min_size: int = MIN_SIZE
    max_size: int = MAX_SIZE
    behaviour: Behaviour = Behaviour.COMPLETE
    key: str | None = "valid"
    """The key to send: valid, wrong, or None."""
    concurrent: int = 1
    """The number of concurrent requests."""
    component_property: tuple[str, str] | None = None
    """The component and its property that the request is about."""

    @property
    def name(self) -> str:
        notes = [] if self.behaviour is Behaviour.COMPLETE else [self.behaviour.value]
        notes += [] if self.key == "valid" else [f"{self.key or 'no'} key"]
        notes += [] if self.concurrent == 1 else [f"{self.concurrent} concurrent"]
        return f"{self.route} {self.location}: {self.shape}" + (f" ({', '.join(notes)})" if notes else "")


def corpus(document: Mapping[str, Any]) -> list[HostileRequest]:
    """The requests for all routes of an OpenAPI document, in its order."""
    locations = Locations(document)
    requests: list[HostileRequest] = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            requests += target_requests(method.upper(), path, operation)
            if body := body_of(operation):
                requests += body_requests(method.upper(), path, locations.of(body), body)
    return requests


def body_of(operation: Mapping[str, Any]) -> str:
    """The name of the component of an operation's body; "" if it has no body."""
    content = operation.get("requestBody", {}).get("content", {})
    reference: str = content.get("application/json", {}).get("schema", {}).get("$ref", "")
    return reference.rpartition("/")[2]


# --- bodies ----------------------------------------------------------------------------------------------------------


def body_requests(method: str, path: str, locations: list[Location], body: str) -> Iterator[HostileRequest]:
    """The requests about a route's body: the whole body, and each of its locations."""
    route = f"{method} {path}"
    for shape in (*TEXTS[1:2], *NUMBERS[1:], *ANY):
        yield _body_request(route, "the body", shape, b"", b"")
    valid = json.dumps(BODIES[body]).encode()
    for name, before, unit, after in (
        ("spaces before", b"", " ", valid),
        ("spaces after", valid, " ", b""),
        ("NULs", b"", "\0", b""),
        ("not UTF-8", b'{"input":"\xff', "a", b'"}'),
        ("unclosed text", b'{"input":"', "a", b""),
        ("unclosed arrays", b'{"input":', "[", b""),
        ("unclosed objects", b"", '{"input":', b""),
    ):
        yield _body_request(route, "the body", Shape(name, repeated(unit)), before, after)
    for key in (None, "wrong"):
        for shape in ANY:
            yield replace(_body_request(route, "the body", shape, b"", b""), key=key)
    for location in locations:
        before, after = location.split()
        for shape in shapes_for(location):
            request = _body_request(route, f"{location.path} of {location.owner}", shape, before, after)
            min_size = COMPILED_MIN_SIZE if shape in (*SCHEMAS, *GRAMMARS) else MIN_SIZE
            yield replace(request, component_property=(location.owner, location.name), min_size=min_size)


def _body_request(route: str, location: str, shape: Shape, before: bytes, after: bytes) -> HostileRequest:
    method, path = route.split()

    def make(size: int) -> Request:
        inner = shape.write(max(1, size - len(before) - len(after)))
        return Request(method=method, target=path, body=b"".join((before, inner, after)))

    return HostileRequest(route=route, location=location, shape=shape.name, make=make)


def shapes_for(location: Location) -> Iterator[Shape]:
    """The shapes for a location: all that its type allows, and some of the others."""
    yield from TEXTS if location.allows("string") or not location.schema else (LETTERS,)
    yield from (
        NUMBERS if location.allows("number") or location.allows("integer") or not location.schema else NUMBERS[:1]
    )
    yield from (shape for shape in ANY if shape not in (LETTERS, NUMBERS[0]))
    for variant in location.variants:
        if variant.get("type") == "array":
            yield from valid_entries(location, variant)
    if location.name in FREE_SCHEMAS:
        yield from SCHEMAS
    if location.name == "definition":
        yield from GRAMMARS


def valid_entries(location: Location, schema: Mapping[str, Any]) -> Iterator[Shape]:
    """Arrays of valid entries, one shape per kind of entry."""
    for number, entry in enumerate(location.entries(schema)):
        unit = json.dumps(entry, separators=(",", ":"))
        yield Shape(f"many valid entries {number}", repeated(unit, start="[", end="]", between=","))


# --- targets and headers ---------------------------------------------------------------------------------------------

TARGET_UNITS = {
    "letters": "a",
    "escapes": "%C3%A9",
    "broken escapes": "%",
    "not UTF-8": "%ff",
    "NULs": "%00",
    "dots": "../",
    "brackets": "%5B%5E",
    "digits": "9",
}


def target_requests(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[HostileRequest]:
    """The requests about a route's path parameters, query and headers, and a body if it has none."""
    route = f"{method} {path}"
    parameters = operation.get("parameters", ())

    def with_target(location: str, shape: str, *, before: str, unit: str, after: str = "") -> HostileRequest:
        def make(size: int) -> Request:
            return Request(method=method, target=f"{before}{unit * (size // len(unit))}{after}")

        return HostileRequest(
            route=route, location=location, shape=shape, make=make, min_size=2 * KIB, max_size=MAX_TARGET_SIZE
        )

    for name, unit in TARGET_UNITS.items():
        for parameter in re.findall(r"{\w+}", path):
            before, after = path.split(parameter)
            yield with_target(f"path {parameter[1:-1]}", name, before=before, unit=unit, after=after)
        declared = [parameter["name"] for parameter in parameters if parameter["in"] == "query"]
        for parameter in dict.fromkeys([*declared, "include[]", "unknown", "stream"]):
            yield with_target(f"query {parameter}", name, before=f"{path}?{parameter}=", unit=unit)
    for name, unit in {
        "repeated name": "stream=true&",
        "empty": "&",
        "includes": "include[]=a&",
        "signs": "=;",
    }.items():
        yield with_target("query", name, before=f"{path}?", unit=unit)
    yield with_target("path", "letters at its end", before=f"{path}/", unit="a")
    for name in (*HEADERS, *(FRAMING if route in FRAMING_ROUTES else ())):
        for shape, unit in {"letters": "a", "commas": ",", "digits": "9", "signs": '=;"', "bytes": "\xe9"}.items():
            yield _header_request(route, name, shape, unit)
    yield _header_request(route, "many headers", "headers", "a: a\r\n")
    if not body_of(operation):
        for extra in (LETTERS, *WIDE[:2]):
            yield replace(_body_request(route, "a body", extra, b"", b""), location="an unexpected body")


def _header_request(route: str, name: str, shape: str, unit: str) -> HostileRequest:
    method, path = route.split()

    def make(size: int) -> Request:
        if shape == "headers":
            headers = "\r\n".join(f"X-{number}: a" for number in range(size // 12))
            return Request(method=method, target=path, headers={"X-First": f"a\r\n{headers}"})
        return Request(method=method, target=path, headers={name: unit * (size // len(unit))})

    return HostileRequest(
        route=route, location=f"header {name}", shape=shape, make=make, min_size=2 * KIB, max_size=MAX_TARGET_SIZE
    )
