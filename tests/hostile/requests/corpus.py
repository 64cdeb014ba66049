"""All hostile requests: each place of each route with each shape that fits it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.hostile import KIB, MIB

from .client import Manner, Request
from .places import WHOLE, Place, Places
from .schema_shapes import GRAMMARS, SCHEMAS
from .shapes import ANY, LETTERS, NUMBERS, TEXTS, WIDE, Shape, repeated

SMALLEST, LARGEST = 64 * KIB, 64 * MIB - 64 * KIB
COMPILED = 15 * KIB
"""Schemas and grammars are refused beyond 64 KiB."""
LONGEST_ADDRESS = MIB
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
FRAMED = ("POST /v1/responses", "GET /healthz")
"""Where these are tried: a server may wait for a body that they announce."""
FREE_SCHEMAS = ("schema", "parameters", "output_schema")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    """One kind of hostile request, of any size from `smallest` to `largest` bytes.

    Names in braces in its target stand for what exists on the server (`Known`).
    """

    route: str
    place: str
    shape: str
    make: Callable[[int], Request]
    smallest: int = SMALLEST
    largest: int = LARGEST
    manner: Manner = Manner.WHOLE
    key: str | None = "good"
    """The caller's key: good, wrong, or none at all."""
    at_once: int = 1
    """So many of it at the same time."""
    about: tuple[str, str] | None = None
    """The component's property that it is about."""

    @property
    def name(self) -> str:
        notes = [] if self.manner is Manner.WHOLE else [self.manner.value]
        notes += [] if self.key == "good" else [f"{self.key or 'no'} key"]
        notes += [] if self.at_once == 1 else [f"{self.at_once} at once"]
        return f"{self.route} {self.place}: {self.shape}" + (f" ({', '.join(notes)})" if notes else "")


def corpus(document: Mapping[str, Any]) -> list[Hostile]:
    """The requests for all routes of an OpenAPI document; their order is that of the document."""
    places = Places(document)
    found: list[Hostile] = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            found += of_address(method.upper(), path, operation)
            if body := body_of(operation):
                found += of_body(method.upper(), path, places.of(body), body)
    return found


def body_of(operation: Mapping[str, Any]) -> str:
    """The component that is an operation's body, "" if it takes none."""
    content = operation.get("requestBody", {}).get("content", {})
    reference: str = content.get("application/json", {}).get("schema", {}).get("$ref", "")
    return reference.rpartition("/")[2]


# --- bodies ----------------------------------------------------------------------------------------------------------


def of_body(method: str, path: str, places: list[Place], body: str) -> Iterator[Hostile]:
    """A route's body: as a whole, and in each of its places."""
    route = f"{method} {path}"
    for shape in (*TEXTS[1:2], *NUMBERS[1:], *ANY):
        yield _in_body(route, "the body", shape, b"", b"")
    whole = json.dumps(WHOLE[body]).encode()
    for name, before, unit, after in (
        ("spaces before", b"", " ", whole),
        ("spaces after", whole, " ", b""),
        ("NULs", b"", "\0", b""),
        ("not UTF-8", b'{"input":"\xff', "a", b'"}'),
        ("unclosed text", b'{"input":"', "a", b""),
        ("unclosed arrays", b'{"input":', "[", b""),
        ("unclosed objects", b"", '{"input":', b""),
    ):
        yield _in_body(route, "the body", Shape(name, repeated(unit)), before, after)
    for key in (None, "wrong"):
        for shape in ANY:
            yield replace(_in_body(route, "the body", shape, b"", b""), key=key)
    for place in places:
        before, after = place.around()
        for shape in shapes_for(place):
            made = _in_body(route, f"{place.path} of {place.owner}", shape, before, after)
            smallest = COMPILED if shape in (*SCHEMAS, *GRAMMARS) else SMALLEST
            yield replace(made, about=(place.owner, place.name), smallest=smallest)


def _in_body(route: str, place: str, shape: Shape, before: bytes, after: bytes) -> Hostile:
    method, path = route.split()

    def make(size: int) -> Request:
        inner = shape.write(max(1, size - len(before) - len(after)))
        return Request(method=method, target=path, body=b"".join((before, inner, after)))

    return Hostile(route=route, place=place, shape=shape.name, make=make)


def shapes_for(place: Place) -> Iterator[Shape]:
    """Everything that a place may be tried with: what its type allows in all forms, anything else in some."""
    yield from TEXTS if place.allows("string") or not place.schema else (LETTERS,)
    yield from NUMBERS if place.allows("number") or place.allows("integer") or not place.schema else NUMBERS[:1]
    yield from (shape for shape in ANY if shape not in (LETTERS, NUMBERS[0]))
    for variant in place.variants:
        if variant.get("type") == "array":
            yield from right_entries(place, variant)
    if place.name in FREE_SCHEMAS:
        yield from SCHEMAS
    if place.name == "definition":
        yield from GRAMMARS


def right_entries(place: Place, schema: Mapping[str, Any]) -> Iterator[Shape]:
    """Arrays of entries that are valid, one kind at a time."""
    for number, entry in enumerate(place.entries(schema)):
        unit = json.dumps(entry, separators=(",", ":"))
        yield Shape(f"many right entries {number}", repeated(unit, start="[", end="]", between=","))


# --- addresses and headers -------------------------------------------------------------------------------------------

ADDRESS = {
    "letters": "a",
    "escapes": "%C3%A9",
    "broken escapes": "%",
    "not UTF-8": "%ff",
    "NULs": "%00",
    "dots": "../",
    "brackets": "%5B%5E",
    "digits": "9",
}


def of_address(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[Hostile]:
    """A route's path parameters, its query, its headers, and a body where none belongs."""
    route = f"{method} {path}"
    parameters = operation.get("parameters", ())

    def addressed(place: str, shape: str, *, before: str, unit: str, after: str = "") -> Hostile:
        def make(size: int) -> Request:
            return Request(method=method, target=f"{before}{unit * (size // len(unit))}{after}")

        return Hostile(route=route, place=place, shape=shape, make=make, smallest=2 * KIB, largest=LONGEST_ADDRESS)

    for name, unit in ADDRESS.items():
        for parameter in re.findall(r"{\w+}", path):
            before, after = path.split(parameter)
            yield addressed(f"path {parameter[1:-1]}", name, before=before, unit=unit, after=after)
        declared = [one["name"] for one in parameters if one["in"] == "query"]
        for parameter in dict.fromkeys([*declared, "include[]", "unknown", "stream"]):
            yield addressed(f"query {parameter}", name, before=f"{path}?{parameter}=", unit=unit)
    for name, unit in {"a name often": "stream=true&", "empty": "&", "includes": "include[]=a&", "signs": "=;"}.items():
        yield addressed("query", name, before=f"{path}?", unit=unit)
    yield addressed("path", "letters after it", before=f"{path}/", unit="a")
    for name in (*HEADERS, *(FRAMING if route in FRAMED else ())):
        for shape, unit in {"letters": "a", "commas": ",", "digits": "9", "signs": '=;"', "bytes": "\xe9"}.items():
            yield _with_header(route, name, shape, unit)
    yield _with_header(route, "many headers", "headers", "a: a\r\n")
    if not body_of(operation):
        for one in (LETTERS, *WIDE[:2]):
            yield replace(_in_body(route, "a body", one, b"", b""), place="a body that it doesn't take")


def _with_header(route: str, name: str, shape: str, unit: str) -> Hostile:
    method, path = route.split()

    def make(size: int) -> Request:
        if shape == "headers":
            many = "\r\n".join(f"X-{number}: a" for number in range(size // 12))
            return Request(method=method, target=path, headers={"X-First": f"a\r\n{many}"})
        return Request(method=method, target=path, headers={name: unit * (size // len(unit))})

    return Hostile(
        route=route, place=f"header {name}", shape=shape, make=make, smallest=2 * KIB, largest=LONGEST_ADDRESS
    )
