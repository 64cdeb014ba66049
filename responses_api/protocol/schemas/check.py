"""JSON Schemas (Draft 2020-12) for answers and for tools' arguments, checked when a response is created.

`check_schema` is bounded in time by its limits, fetches nothing and runs no pattern. A schema that passes can be
enforced token by token. `check_form` is for schemas that need not be enforced: it refuses those that are too large or
invalid in every draft; `enforceable_part` is the part of such a schema that the decoder can follow.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import orjson

from inference.constraints import constraint_error
from inference.types import Constraint
from responses_api.errors import InvalidValue
from responses_api.protocol.json.values import Path, describe, format_path, shorten
from responses_api.protocol.schemas.decoder import enforceable, rewritten
from responses_api.protocol.schemas.endless import endless_place
from responses_api.protocol.schemas.finite import is_finite
from responses_api.protocol.schemas.keywords import FORMS, KNOWN, NO_EFFECT, UNENFORCEABLE, number_errors
from responses_api.protocol.schemas.nodes import LISTS, MAPS, SINGLE, Node, all_nodes, subschemas
from responses_api.protocol.schemas.references import Places

_MOST_TRIALS = 200  # subschemas tried in search of an error
_MOST_DROPPED = 24  # keywords dropped from a schema that need not be enforced
_FEW_TRIALS = 40  # subschemas tried per dropped keyword; an error that isn't found is dropped with its surroundings
_DROPPING_SECONDS = 0.2  # of CPU time; a schema that takes longer is not enforced at all
_MOST_QUOTED = 160  # characters of the decoder's reason


class SchemaError(InvalidValue):
    """An error in a schema; `place` is the path to it."""

    def __init__(self, place: Path, reason: str) -> None:
        param = format_path(place)
        super().__init__(f"`{param}` {reason.strip()}.", param=param)
        self.place = place


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaLimits:
    """Limits on a schema's bytes of JSON, on its subschemas, and on their nesting."""

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
    if strict:
        _check_strict(schema, path)
    _check_whole(schema, path)


def _check_whole(schema: dict[str, Any], path: Path, *, most_trials: int = _MOST_TRIALS) -> None:
    for place, reason in number_errors(schema, path):
        raise SchemaError(place, reason)
    _check_references(schema, path)
    endless = endless_place(schema)
    if endless is not None:
        raise SchemaError((*path, *endless), "refers to itself for the same value; let it refer to a part of the value")
    if not is_finite(schema):
        reason = "is satisfied by no value of finite size; give its recursion an end, such as a null or an []"
        raise SchemaError(path, reason)
    _check_decoder(schema, path, most_trials=most_trials)


def check_form(schema: dict[str, Any], *, path: Path, limits: SchemaLimits) -> None:
    """Raise InvalidValue, naming the place, for a schema that is too large, or invalid in every draft."""
    _check_bytes(schema, path, limits)
    _check_nodes(schema, path, limits, _check_structure)


def enforceable_part(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The part of a schema that the decoder can follow, in the decoder's form; None when there is none.

    The schema has passed `check_form`; its part allows the same values and more. Cached by the JSON text: don't change
    the result.
    """
    return _enforceable_part(json.dumps(schema))


@lru_cache(maxsize=256)
def _enforceable_part(text: str) -> dict[str, Any] | None:
    part: Any = rewritten(json.loads(text), _without_unenforceable)
    deadline = time.thread_time() + _DROPPING_SECONDS
    for _ in range(_MOST_DROPPED):
        if time.thread_time() > deadline:
            return None
        try:
            _check_nodes(part, (), _ANY_SIZE, _check_keywords)
            _check_whole(part, (), most_trials=_FEW_TRIALS)
        except SchemaError as error:
            if not error.place:
                return None
            part = _dropped(part, error.place)
        else:
            return enforceable(part)
    return None


def _without_unenforceable(node: dict[str, Any]) -> dict[str, Any]:
    return {keyword: value for keyword, value in node.items() if keyword not in UNENFORCEABLE}


_WITH: Final = {
    "prefixItems": "items",
    "properties": "additionalProperties",
    "patternProperties": "additionalProperties",
}
"""Keywords whose meaning depends on the one that is dropped."""


def _dropped(node: dict[str, Any], place: Path) -> Any:
    """A copy of a schema without the value at this place."""
    if not place:
        return {}
    keyword, rest = str(place[0]), place[1:]
    copy = dict(node)
    if keyword in SINGLE:
        copy[keyword] = _dropped(node[keyword], rest)
    elif keyword in (*MAPS, *LISTS) and rest:
        children: Any = node[keyword]
        children = dict(children) if isinstance(children, dict) else list(children)
        children[rest[0]] = _dropped(children[rest[0]], rest[1:])
        copy[keyword] = children
    else:
        copy.pop(keyword, None)
        copy.pop(_WITH.get(keyword, ""), None)
    return copy


# --- form -------------------------------------------------------------------------------------------------------------


def _check_bytes(schema: Any, path: Path, limits: SchemaLimits) -> None:
    size = len(orjson.dumps(schema))
    if size > limits.max_bytes:
        raise SchemaError(path, f"is {size} bytes of JSON, and {limits.max_bytes} are allowed; use a smaller schema")


def _check_nodes(schema: Any, path: Path, limits: SchemaLimits, check: Callable[[dict[str, Any], Path], None]) -> None:
    count = 0
    waiting: list[tuple[Path, Any, int]] = [(path, schema, 1)]
    while waiting:
        place, node, depth = waiting.pop()
        count += 1
        if count > limits.max_nodes:
            raise SchemaError(path, f"has more than {limits.max_nodes} subschemas; use a smaller schema")
        if depth > limits.max_depth:
            raise SchemaError(place, f"is nested deeper than {limits.max_depth} levels; use `$ref` or a flatter schema")
        if isinstance(node, bool) or (check is _check_structure and isinstance(node, list) and place[-1] == "items"):
            continue  # draft 7 has arrays of schemas as `items`
        if not isinstance(node, dict):
            raise SchemaError(place, f"must be a schema, which is an object or a boolean, but it is {describe(node)}")
        check(node, place)
        waiting += reversed([((*place, *step), child, depth + 1) for step, child in subschemas(node)])


def _check_keywords(node: dict[str, Any], place: Path) -> None:
    for keyword, value in node.items():
        if keyword in UNENFORCEABLE and not (keyword in NO_EFFECT and value is NO_EFFECT[keyword]):
            reason = f"can't be enforced, for the keyword '{keyword}' is not supported; remove it"
            raise SchemaError((*place, keyword), reason)
        _check_value(keyword, value, place)
    if not node.get("$ref", "#").startswith("#"):
        reason = "must begin with '#': other documents are never fetched; move it into '$defs'"
        raise SchemaError((*place, "$ref"), reason)


def _check_structure(node: dict[str, Any], place: Path) -> None:
    for keyword in ("type", *MAPS, *LISTS):
        if keyword in node:
            _check_value(keyword, node[keyword], place)


def _check_value(keyword: str, value: object, place: Path) -> None:
    allowed = FORMS.get(keyword)
    if allowed is not None and not allowed[0](value):
        raise SchemaError((*place, keyword), f"must be {allowed[1]}, but it is {describe(value)}")


def _check_references(schema: dict[str, Any], path: Path) -> None:
    places = Places(schema)
    for place, node in all_nodes(schema, path):
        if isinstance(node, bool):
            continue
        if "$ref" in node and places.target(node["$ref"]) is None:
            reason = (
                f"leads to no schema: '{shorten(node['$ref'])}' must be a pointer such as '#/$defs/name', or an anchor"
            )
            raise SchemaError((*place, "$ref"), reason)
        if "$id" in node and place != path:
            reason = "changes what references within it mean, which is not supported; remove it"
            raise SchemaError((*place, "$id"), reason)


# --- OpenAI's rules for strict schemas --------------------------------------------------------------------------------


def _check_strict(schema: dict[str, Any], path: Path) -> None:
    if schema.get("type") != "object":
        raise SchemaError((*path, "type"), "must be 'object' at the root of a strict schema")
    if "anyOf" in schema:
        raise SchemaError((*path, "anyOf"), "is not allowed at the root of a strict schema; put it into a property")
    for place, node in all_nodes(schema, path):
        if isinstance(node, bool):
            continue
        unknown = next((keyword for keyword in node if keyword not in KNOWN), None)
        if unknown is not None:
            reason = "is not a keyword of JSON Schema 2020-12, and a strict schema may have no other; remove it"
            raise SchemaError((*place, unknown), reason)
        if not _is_object(node):
            continue
        if node.get("additionalProperties") is not False:
            raise SchemaError(
                (*place, "additionalProperties"), "must be given, and be false, in every object of a strict schema"
            )
        required = node.get("required", [])
        missing = next((name for name in node.get("properties", {}) if name not in required), None)
        if missing is not None:
            reason = f"must name every property in a strict schema, and '{missing}' is missing; let it be null instead"
            raise SchemaError((*place, "required"), reason)


def _is_object(node: dict[str, Any]) -> bool:
    kinds = node.get("type")
    return kinds == "object" or (isinstance(kinds, list) and "object" in kinds) or "properties" in node


# --- the decoder ------------------------------------------------------------------------------------------------------


def _check_decoder(schema: dict[str, Any], path: Path, *, most_trials: int) -> None:
    reason = _decoder_error(schema)
    if not reason:
        return
    root = rewritten(schema, _inside)
    place: Path = ()
    node: Node = schema
    trials = 0
    while trials < most_trials:
        for step, child in subschemas(node):
            if trials >= most_trials:
                break
            pointer = "".join(f"/{_escaped(part)}" for part in (*place, *step))
            trials += 1
            inner = "" if child is True else _decoder_error({"$ref": f"#/$defs/root{pointer}", "$defs": {"root": root}})
            if inner:
                place, node, reason = (*place, *step), child, inner
                break
        else:
            break
    place, reason = _keyword(place, node, reason)
    reason = reason.replace("#/$defs/root", "#").replace("/$defs/root", "#")
    shown = reason if len(reason) <= _MOST_QUOTED else reason[:_MOST_QUOTED] + "…"
    raise SchemaError((*path, *place), f"can't be enforced ({shown}); change it or remove it")


def _decoder_error(schema: dict[str, Any]) -> str:
    return constraint_error(Constraint(kind="json_schema", text=json.dumps(enforceable(schema))))


def _keyword(place: Path, node: Node, reason: str) -> tuple[Path, str]:
    """The place of the keyword in error, where the reason names it."""
    for keyword, words in (("$ref", "ointer"), ("oneOf", "oneOf"), ("format", "format"), ("pattern", "regex")):
        if isinstance(node, dict) and keyword in node and words in reason:
            clear = "its schemas may overlap; use 'anyOf'" if keyword == "oneOf" else reason
            return (*place, keyword), clear
    return place, reason


def _inside(node: dict[str, Any]) -> dict[str, Any]:
    """A node whose references lead into `#/$defs/root`, where its schema has become a definition of another."""
    reference = node.get("$ref", "")
    local = reference == "#" or reference.startswith("#/")
    return {**node, "$ref": "#/$defs/root" + reference[1:]} if local else node


def _escaped(step: str | int) -> str:
    return str(step).replace("~", "~0").replace("/", "~1")
