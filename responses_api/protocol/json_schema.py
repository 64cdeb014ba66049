"""JSON Schemas (Draft 2020-12) that an answer or a tool's arguments are to satisfy: what is refused at creation.

`check_schema` is bounded in time by its limits, fetches nothing and runs no pattern. What it lets through can be
enforced token by token; `enforceable` gives the schema as the decoder takes it. `check_form` is for schemas that need
not be enforced: it refuses what is too large or no schema in any draft, and `is_enforceable` tells of the rest.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import orjson

from inference.constraints import flaw
from inference.patterns import for_json_strings
from inference.types import Constraint
from responses_api.errors import InvalidValue
from responses_api.protocol.base import describe
from responses_api.protocol.closed_schema import closed
from responses_api.protocol.finite_schema import is_finite
from responses_api.protocol.schema_nodes import LISTS, MAPS, SINGLE, TYPES, Node, all_nodes, subschemas
from responses_api.protocol.wire_values import Path, format_path

UNENFORCEABLE: Final = (
    "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "contains", "minContains",
    "maxContains", "uniqueItems", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "additionalItems",
    "$dynamicRef", "$recursiveRef",
)  # fmt: skip
"""Keywords that restrict a value and that no decoder here can follow."""
_NO_EFFECT: Final[Mapping[str, Any]] = {"uniqueItems": False, "unevaluatedItems": True, "unevaluatedProperties": True}

MOST_MULTIPLE: Final = 10_000
"""The decoder counts remainders: the least common multiple of all `multipleOf` of a schema is at most this."""
LARGEST_MINIMUM: Final = 10_000
"""The decoder has a state for each letter that has to come."""
_MOST_TRIALS = 200  # subschemas that are tried in search of a fault
_MOST_QUOTED = 160  # characters of the decoder's reason


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaLimits:
    """How large a schema may be: bytes of JSON, subschemas, and levels of subschemas in each other."""

    max_bytes: int
    max_nodes: int
    max_depth: int


_ANY_SIZE: Final = SchemaLimits(max_bytes=sys.maxsize, max_nodes=sys.maxsize, max_depth=sys.maxsize)


def check_schema(schema: dict[str, Any], *, path: Path, limits: SchemaLimits, strict: bool) -> None:
    """Raise InvalidValue, naming the place, for a schema that is too large, not valid, or can't be enforced.

    `path` leads to the schema; `strict` adds OpenAI's own rules for strict schemas.
    """
    _check_bytes(schema, path, limits)
    _check_nodes(schema, path, limits, _check_keywords)
    _check_numbers(schema, path)
    if strict:
        _check_strict(schema, path)
    _check_end(schema, path)
    _check_decoder(schema, path)


def check_form(schema: dict[str, Any], *, path: Path, limits: SchemaLimits) -> None:
    """Raise InvalidValue, naming the place, for a schema that is too large, or that no draft would call one."""
    _check_bytes(schema, path, limits)
    _check_nodes(schema, path, limits, _check_structure)


def is_enforceable(schema: dict[str, Any]) -> bool:
    """Whether `check_schema` would let it through, its size and OpenAI's rules aside. Remembered by the JSON text.

    Takes milliseconds for what has passed `check_form`.
    """
    return _is_enforceable(json.dumps(schema))


@lru_cache(maxsize=256)
def _is_enforceable(text: str) -> bool:
    schema = json.loads(text)
    try:
        _check_nodes(schema, (), _ANY_SIZE, _check_keywords)
        _check_numbers(schema, ())
        _check_end(schema, ())
    except InvalidValue:
        return False
    return not _decoder_flaw(schema)


def enforceable(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as the decoder takes it: it allows no other values, and objects no properties that nobody spoke of."""
    enforced: dict[str, Any] = _rewritten(schema, _simpler)
    return closed(enforced)


def without_patterns(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without what runs patterns; it allows the same values and more."""
    loosened: dict[str, Any] = _rewritten(schema, _patternless)
    return loosened


def _refuse(path: Path, reason: str) -> None:
    param = format_path(path)
    raise InvalidValue(f"`{param}` {reason.strip()}.", param=param)


# --- form -------------------------------------------------------------------------------------------------------------


def _check_bytes(schema: Any, path: Path, limits: SchemaLimits) -> None:
    size = len(orjson.dumps(schema))
    if size > limits.max_bytes:
        _refuse(path, f"is {size} bytes of JSON, and {limits.max_bytes} are allowed; use a smaller schema")


def _check_nodes(schema: Any, path: Path, limits: SchemaLimits, check: Callable[[dict[str, Any], Path], None]) -> None:
    count = 0
    waiting: list[tuple[Path, Any, int]] = [(path, schema, 1)]
    while waiting:
        place, node, depth = waiting.pop()
        count += 1
        if count > limits.max_nodes:
            _refuse(path, f"has more than {limits.max_nodes} subschemas; use a smaller schema")
        if depth > limits.max_depth:
            _refuse(place, f"is nested deeper than {limits.max_depth} levels; use `$ref` or a flatter schema")
        if isinstance(node, bool) or (check is _check_structure and isinstance(node, list) and place[-1] == "items"):
            continue  # draft 7 has arrays of schemas as `items`
        if not isinstance(node, dict):
            _refuse(place, f"must be a schema, which is an object or a boolean, but it is {describe(node)}")
        check(node, place)
        waiting += reversed([((*place, *step), child, depth + 1) for step, child in subschemas(node)])


def _check_keywords(node: dict[str, Any], place: Path) -> None:
    for keyword, value in node.items():
        if keyword in UNENFORCEABLE and not (keyword in _NO_EFFECT and value is _NO_EFFECT[keyword]):
            _refuse((*place, keyword), f"can't be enforced, for the keyword '{keyword}' is not supported; remove it")
        _check_value(keyword, value, place)
    reference = node.get("$ref", "#")
    if not reference.startswith("#"):
        _refuse((*place, "$ref"), "must begin with '#': other documents are never fetched; move it into '$defs'")


def _check_structure(node: dict[str, Any], place: Path) -> None:
    for keyword in ("type", *MAPS, *LISTS):
        if keyword in node:
            _check_value(keyword, node[keyword], place)


def _check_value(keyword: str, value: object, place: Path) -> None:
    allowed = _FORMS.get(keyword)
    if allowed is not None and not allowed[0](value):
        _refuse((*place, keyword), f"must be {allowed[1]}, but it is {describe(value)}")


def _is_type(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and all(name in TYPES for name in value) and len(set(value)) == len(value)
    return value in TYPES


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_multiple(value: Any) -> bool:
    return _is_number(value) and value > 0


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(n, str) for n in value) and len(set(value)) == len(value)


def _is_full_list(value: object) -> bool:
    return isinstance(value, list) and bool(value)


def _is(kind: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kind)


_FORMS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "type": (_is_type, "one of " + ", ".join(f"'{name}'" for name in TYPES) + ", or an array of them"),
    "enum": (_is_full_list, "an array with at least one value"),
    "required": (_are_names, "an array of names, each once"),
    **dict.fromkeys(MAPS, (_is(dict), "an object of schemas")),
    **dict.fromkeys(LISTS, (_is_full_list, "an array with at least one schema")),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        (_is_count, "an integer of at least 0"),
    ),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), (_is_number, "a number")),
    "multipleOf": (_is_multiple, "a number above 0"),
    **dict.fromkeys(
        ("pattern", "format", "$ref", "$id", "$anchor", "$schema", "$comment", "title", "description"),
        (_is(str), "a string"),
    ),
    **dict.fromkeys(("deprecated", "readOnly", "writeOnly"), (_is(bool), "true or false")),
    "examples": (_is(list), "an array"),
}


def _check_numbers(schema: Node, path: Path) -> None:
    common = 1
    for place, node in all_nodes(schema, path):
        if isinstance(node, bool):
            continue
        for keyword in ("minLength", "minItems"):
            if node.get(keyword, 0) > LARGEST_MINIMUM:
                _refuse((*place, keyword), f"can't be enforced: it may be {LARGEST_MINIMUM} at most")
        if "multipleOf" in node:
            _, digits, exponent = Decimal(repr(node["multipleOf"])).normalize().as_tuple()
            whole = int("".join(map(str, digits))) * 10 ** max(0, int(exponent))
            common = math.lcm(common, whole)
            if common > MOST_MULTIPLE:
                reason = f"can't be enforced: all multiples of a schema together must divide {MOST_MULTIPLE} or less"
                _refuse((*place, "multipleOf"), reason)


def _check_end(schema: dict[str, Any], path: Path) -> None:
    if not is_finite(schema):
        _refuse(path, "is satisfied by no value of finite size; give its recursion an end, such as a null or an []")


# --- OpenAI's rules for strict schemas --------------------------------------------------------------------------------


def _check_strict(schema: dict[str, Any], path: Path) -> None:
    if schema.get("type") != "object":
        _refuse((*path, "type"), "must be 'object' at the root of a strict schema")
    if "anyOf" in schema:
        _refuse((*path, "anyOf"), "is not allowed at the root of a strict schema; put it into a property")
    for place, node in all_nodes(schema, path):
        if isinstance(node, bool) or not _is_object(node):
            continue
        if node.get("additionalProperties") is not False:
            _refuse((*place, "additionalProperties"), "must be given, and be false, in every object of a strict schema")
        required = node.get("required", [])
        missing = next((name for name in node.get("properties", {}) if name not in required), None)
        if missing is not None:
            reason = f"must name every property in a strict schema, and '{missing}' is missing; let it be null instead"
            _refuse((*place, "required"), reason)


def _is_object(node: dict[str, Any]) -> bool:
    kinds = node.get("type")
    return kinds == "object" or (isinstance(kinds, list) and "object" in kinds) or "properties" in node


# --- the decoder ------------------------------------------------------------------------------------------------------


def _check_decoder(schema: dict[str, Any], path: Path) -> None:
    reason = _decoder_flaw(schema)
    if not reason:
        return
    root = _rewritten(schema, _inside)
    place: Path = ()
    node: Node = schema
    trials = 0
    while trials < _MOST_TRIALS:
        for step, child in subschemas(node):
            pointer = "".join(f"/{_escaped(part)}" for part in (*place, *step))
            trials += 1
            inner = "" if child is True else _decoder_flaw({"$ref": f"#/$defs/root{pointer}", "$defs": {"root": root}})
            if inner:
                place, node, reason = (*place, *step), child, inner
                break
        else:
            break
    place, reason = _keyword(place, node, reason)
    reason = reason.replace("/$defs/root", "#")
    shown = reason if len(reason) <= _MOST_QUOTED else reason[:_MOST_QUOTED] + "…"
    _refuse((*path, *place), f"can't be enforced ({shown}); change it or remove it")


def _decoder_flaw(schema: dict[str, Any]) -> str:
    return flaw(Constraint(kind="json_schema", text=json.dumps(enforceable(schema))))


def _keyword(place: Path, node: Node, reason: str) -> tuple[Path, str]:
    """The place of the one keyword that is meant, where that can be told."""
    for keyword, words in (("$ref", "ointer"), ("oneOf", "oneOf"), ("format", "format"), ("pattern", "regex")):
        if isinstance(node, dict) and keyword in node and words in reason:
            clear = "its schemas may overlap; use 'anyOf'" if keyword == "oneOf" else reason
            return (*place, keyword), clear
    return place, reason


def _rewritten(node: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """A copy of a schema with every subschema changed."""
    if not isinstance(node, dict):
        return node
    copy = dict(node)
    for keyword in MAPS:
        if keyword in node:
            copy[keyword] = {name: _rewritten(child, change) for name, child in node[keyword].items()}
    for keyword in LISTS:
        if keyword in node:
            copy[keyword] = [_rewritten(child, change) for child in node[keyword]]
    for keyword in SINGLE:
        if keyword in node:
            copy[keyword] = _rewritten(node[keyword], change)
    return change(copy)


def _inside(node: dict[str, Any]) -> dict[str, Any]:
    """References of a schema that has become a definition of another."""
    reference = node.get("$ref", "")
    local = reference == "#" or reference.startswith("#/")
    return {**node, "$ref": "#/$defs/root" + reference[1:]} if local else node


def _escaped(step: str | int) -> str:
    return str(step).replace("~", "~0").replace("/", "~1")


def _simpler(node: dict[str, Any]) -> dict[str, Any]:
    """Without keywords that have no effect; `oneOf` as `anyOf` where its values can't overlap; patterns made safe."""
    node = {keyword: value for keyword, value in node.items() if keyword not in _NO_EFFECT}
    if isinstance(node.get("pattern"), str):
        node["pattern"] = for_json_strings(node["pattern"])
    choices = node.get("oneOf")
    if choices is None or "anyOf" in node or not _are_distinct(choices):
        return node
    return {("anyOf" if keyword == "oneOf" else keyword): value for keyword, value in node.items()}


def _patternless(node: dict[str, Any]) -> dict[str, Any]:
    dropped = {"pattern", "patternProperties"}
    if "patternProperties" in node:
        dropped.add("additionalProperties")  # which properties these are, patterns tell
    return {keyword: value for keyword, value in node.items() if keyword not in dropped}


def _are_distinct(choices: list[Node]) -> bool:
    seen: set[tuple[type, Any]] = set()
    for choice in choices:
        if isinstance(choice, bool) or not ("const" in choice or "enum" in choice):
            return False
        for value in [choice["const"]] if "const" in choice else choice["enum"]:
            if isinstance(value, list | dict):
                return False
            key = (bool if isinstance(value, bool) else type(None), value)
            if key in seen:
                return False
            seen.add(key)
    return True
