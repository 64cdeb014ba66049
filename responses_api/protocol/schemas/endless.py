"""Whether a JSON Schema refers to itself for the same value: JSON Schema leaves open what that means (Core, 9.4.1)."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from responses_api.protocol.json.values import Path
from responses_api.protocol.schemas.nodes import all_nodes
from responses_api.protocol.schemas.references import Places

IN_PLACE: Final = ("allOf", "anyOf", "oneOf")
"""Keywords whose subschemas are applied to the same value."""


def endless_place(schema: dict[str, Any]) -> Path | None:
    """The first subschema that is applied, by way of itself, to the same value again; None where none is."""
    places = Places(schema)
    nodes = {id(node): (place, node) for place, node in all_nodes(schema, ()) if isinstance(node, dict)}
    after = {key: _applied(node, places) & nodes.keys() for key, (_, node) in nodes.items()}
    before: defaultdict[int, set[int]] = defaultdict(set)
    for key, targets in after.items():
        for target in targets:
            before[target].add(key)
    # A node without successors, or without predecessors, is in no cycle. Removing it may make others such nodes.
    _peel(after, before)
    _peel(before, after)
    left = after.keys() & before.keys()
    return next((place for key, (place, _) in nodes.items() if key in left), None)


def _applied(node: dict[str, Any], places: Places) -> set[int]:
    targets = {id(choice) for keyword in IN_PLACE for choice in node.get(keyword, ())}
    if "$ref" in node:
        targets.add(id(places.target(node["$ref"])))
    return targets


def _peel(after: dict[int, set[int]], before: dict[int, set[int]]) -> None:
    ends = [key for key in before.keys() | after.keys() if not after.get(key)]
    while ends:
        end = ends.pop()
        after.pop(end, None)
        for key in before.pop(end, set()):
            after[key].discard(end)
            if not after[key]:
                ends.append(key)
