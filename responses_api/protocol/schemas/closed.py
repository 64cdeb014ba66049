"""Limits objects to the properties that their schema names: a small model would otherwise invent more without end."""

from __future__ import annotations

from typing import Any

from responses_api.protocol.schemas.nodes import all_nodes

_ABOUT_OTHERS = frozenset(
    ("additionalProperties", "patternProperties", "anyOf", "oneOf", "$ref", "minProperties", "if", "dependentSchemas")
)


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with `additionalProperties: false` wherever it names properties and doesn't mention others.

    It allows a subset of the same values, and at least one if the schema does: a schema with `allOf` is unchanged.
    """
    if any("allOf" in node for _, node in all_nodes(schema, ()) if isinstance(node, dict)):
        return schema
    result: dict[str, Any] = _closed(schema)
    return result


def _closed(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    result = dict(node)
    for keyword in ("properties", "$defs", "definitions"):
        if isinstance(node.get(keyword), dict):
            result[keyword] = {name: _closed(child) for name, child in node[keyword].items()}
    if "items" in node:
        result["items"] = _closed(node["items"])
    for keyword in ("anyOf", "oneOf", "prefixItems"):
        if isinstance(node.get(keyword), list):
            result[keyword] = [_closed(child) for child in node[keyword]]
    properties = node.get("properties")
    if properties and not _ABOUT_OTHERS & node.keys() and properties.keys() >= set(node.get("required", ())):
        result["additionalProperties"] = False
    return result
