"""A JSON Schema as a tree of subschemas: the one walk that all checks use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from responses_api.protocol.json.values import Path

Node = dict[str, Any] | bool
TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")

MAPS: Final = ("$defs", "definitions", "properties", "patternProperties")
LISTS: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
SINGLE: Final = ("items", "additionalProperties")


def subschemas(node: Node) -> Iterator[tuple[Path, Node]]:
    """The direct subschemas, definitions first, each with its path from the node.

    A malformed value of a keyword has none; any value in place of a schema is included.
    """
    if not isinstance(node, dict):
        return
    for keyword in MAPS:
        if isinstance(children := node.get(keyword), dict):
            for name, child in children.items():
                yield (keyword, name), child
    for keyword in LISTS:
        if isinstance(children := node.get(keyword), list):
            for index, child in enumerate(children):
                yield (keyword, index), child
    for keyword in SINGLE:
        if keyword in node:
            yield (keyword,), node[keyword]


def all_nodes(node: Node, place: Path) -> Iterator[tuple[Path, Node]]:
    """A schema and all its subschemas, each with its path."""
    yield place, node
    for step, child in subschemas(node):
        yield from all_nodes(child, (*place, *step))
