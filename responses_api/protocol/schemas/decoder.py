"""A JSON Schema in the decoder's form: the keywords that it can follow, in its spelling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inference.grammars import for_json_strings
from responses_api.protocol.schemas.closed import closed
from responses_api.protocol.schemas.keywords import ENFORCED
from responses_api.protocol.schemas.nodes import LISTS, MAPS, SINGLE, Node
from responses_api.protocol.schemas.references import Places


def enforceable(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema in the decoder's form: it allows no other values, and no properties that the schema doesn't name.

    Annotations are left out, and so are options of the decoder that a caller may have put among them.
    """
    places = Places(schema)
    enforced: dict[str, Any] = rewritten(schema, lambda node: _simpler(node, places))
    return closed(enforced)


def without_patterns(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without the keywords that run patterns; it allows the same values and more."""
    loosened: dict[str, Any] = rewritten(schema, _patternless)
    return loosened


def rewritten(node: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """A copy of a schema with every subschema changed."""
    if not isinstance(node, dict):
        return node
    copy = dict(node)
    for keyword in MAPS:
        if keyword in node:
            copy[keyword] = {name: rewritten(child, change) for name, child in node[keyword].items()}
    for keyword in LISTS:
        if keyword in node:
            copy[keyword] = [rewritten(child, change) for child in node[keyword]]
    for keyword in SINGLE:
        if keyword in node:
            copy[keyword] = rewritten(node[keyword], change)
    return change(copy)


def _simpler(node: dict[str, Any], places: Places) -> dict[str, Any]:
    """A node with `anyOf` instead of a `oneOf` whose values can't overlap, safe patterns, and canonical references."""
    node = {keyword: value for keyword, value in node.items() if keyword in ENFORCED}
    if "pattern" in node:
        node["pattern"] = for_json_strings(node["pattern"])
    if "$ref" in node:
        node["$ref"] = places.canonical(node["$ref"])
    choices = node.get("oneOf")
    if choices is None or "anyOf" in node or not are_distinct(choices):
        return node
    return {("anyOf" if keyword == "oneOf" else keyword): value for keyword, value in node.items()}


def _patternless(node: dict[str, Any]) -> dict[str, Any]:
    dropped = {"pattern", "patternProperties"}
    if "patternProperties" in node:
        dropped.add("additionalProperties")  # patterns decide which properties these are
    return {keyword: value for keyword, value in node.items() if keyword not in dropped}


def are_distinct(choices: list[Node]) -> bool:
    """Whether no value can satisfy two of the choices, as far as their constants tell."""
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
