"""Keywords of JSON Schema (Draft 2020-12): the known ones, the enforced ones, and the form of their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from responses_api.protocol.json.values import Path
from responses_api.protocol.schemas.nodes import LISTS, MAPS, TYPES, Node, all_nodes

ENFORCED: Final = frozenset(
    {
        "type", "enum", "const", "$ref", "$defs", "definitions", "anyOf", "oneOf", "allOf",
        "properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties",
        "items", "prefixItems", "minItems", "maxItems",
        "minLength", "maxLength", "pattern", "format",
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    }
)  # fmt: skip
"""Keywords that reach the decoder: nothing else of a caller's schema does."""
UNENFORCEABLE: Final = (
    "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "contains", "minContains",
    "maxContains", "uniqueItems", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "additionalItems",
    "$dynamicRef", "$recursiveRef",
)  # fmt: skip
"""Keywords that restrict a value and that no decoder here can follow."""
NO_EFFECT: Final[Mapping[str, Any]] = {"uniqueItems": False, "unevaluatedItems": True, "unevaluatedProperties": True}
"""Values with which some keywords restrict nothing."""
ANNOTATIONS: Final = frozenset(
    {
        "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$schema",
        "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "contentEncoding", "contentMediaType",
        "contentSchema",
    }
)  # fmt: skip
KNOWN: Final = ENFORCED | ANNOTATIONS | frozenset(UNENFORCEABLE)

MOST_MULTIPLE: Final = 10_000
"""The decoder counts remainders: the least common multiple of all `multipleOf` of a schema is at most this."""
LARGEST_MINIMUM: Final = 10_000
"""The decoder has one state per required character."""
MOST_OPTIONAL: Final = 64
"""With `minProperties` the decoder has one rule per pair of optional properties."""
LARGEST_EXACT: Final = 2**53 - 1
"""The decoder reads numbers as doubles, which are exact up to here."""
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


def _is_type(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and all(name in TYPES for name in value) and len(set(value)) == len(value)
    return value in TYPES


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_multiple(value: Any) -> bool:
    return is_number(value) and value > 0


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(n, str) for n in value) and len(set(value)) == len(value)


def _is_full_list(value: object) -> bool:
    return isinstance(value, list) and bool(value)


def _is(kind: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kind)


FORMS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "type": (_is_type, "one of " + ", ".join(f"'{name}'" for name in TYPES) + ", or an array of them"),
    "enum": (_is_full_list, "an array with at least one value"),
    "required": (_are_names, "an array of names, each once"),
    **dict.fromkeys(MAPS, (_is(dict), "an object of schemas")),
    **dict.fromkeys(LISTS, (_is_full_list, "an array with at least one schema")),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        (_is_count, "an integer of at least 0"),
    ),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), (is_number, "a number")),
    "multipleOf": (_is_multiple, "a number above 0"),
    **dict.fromkeys(
        ("pattern", "format", "$ref", "$id", "$anchor", "$schema", "$comment", "title", "description"),
        (_is(str), "a string"),
    ),
    **dict.fromkeys(("deprecated", "readOnly", "writeOnly"), (_is(bool), "true or false")),
    "examples": (_is(list), "an array"),
}
"""A test of each keyword's value, and a description of what passes it."""


def number_errors(schema: Node, path: Path) -> Iterator[tuple[Path, str]]:
    """Numbers of a schema that the decoder would round, or would need too many states for: place and reason."""
    common = 1
    for place, node in all_nodes(schema, path):
        if isinstance(node, bool):
            continue
        for keyword in ("minLength", "minItems"):
            if node.get(keyword, 0) > LARGEST_MINIMUM:
                yield (*place, keyword), f"can't be enforced: it may be {LARGEST_MINIMUM} at most"
        optional = node.get("properties", {}).keys() - set(node.get("required", ()))
        if node.get("minProperties", 0) > 0 and len(optional) > MOST_OPTIONAL:
            reason = f"can't be enforced beside more than {MOST_OPTIONAL} optional properties; remove it"
            yield (*place, "minProperties"), reason
        for keyword in _BOUNDS:
            if not _is_exact(node.get(keyword, 0)):
                yield (*place, keyword), _inexact("remove it, or use a smaller one")
        yield from _value_errors(node, place)
        if "multipleOf" in node and _is_exact(node["multipleOf"]):
            _, digits, exponent = Decimal(repr(node["multipleOf"])).normalize().as_tuple()
            whole = int("".join(map(str, digits))) * 10 ** max(0, int(exponent))
            joined = math.lcm(common, whole)
            if joined > MOST_MULTIPLE:
                reason = f"can't be enforced: all multiples of a schema together must divide {MOST_MULTIPLE} or less"
                yield (*place, "multipleOf"), reason
            else:
                common = joined


def _value_errors(node: dict[str, Any], place: Path) -> Iterator[tuple[Path, str]]:
    entries = [((*place, "enum", index), value) for index, value in enumerate(node.get("enum", ()))]
    if "const" in node:
        entries.append(((*place, "const"), node["const"]))
    for where, value in entries:
        if not all(map(_is_exact, _scalars(value))):
            yield where, _inexact("use a string for an id")


def _scalars(value: object) -> Iterator[object]:
    """The scalar values inside a constant."""
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict | list):
            waiting += inner.values() if isinstance(inner, dict) else inner
        else:
            yield inner


def _is_exact(value: object) -> bool:
    return not (isinstance(value, int | float) and abs(value) > LARGEST_EXACT)


def _inexact(remedy: str) -> str:
    return f"can't be enforced exactly: a number may be from -{LARGEST_EXACT} to {LARGEST_EXACT}; {remedy}"
