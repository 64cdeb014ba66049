"""Whether a JSON Schema, which may contain itself, is satisfied by some value of finite size."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from responses_api.protocol.schemas.nodes import TYPES, Node, all_nodes
from responses_api.protocol.schemas.references import Places

_UNLIMITED = 1 << 62
_MOST_VISITS = 500_000
"""Limit on visits to subschemas, repeated ones included; a schema that needs more counts as finite."""


def is_finite(schema: dict[str, Any]) -> bool:
    """Whether some finite value may satisfy it.

    Grown from the leaves, since a schema can contain itself. Contradictions between numbers, lengths or texts are not
    seen: then the answer is yes.
    """
    return _Growth(schema).is_finite()


class _Growth:
    """The growing set of subschemas that are known to have a finite value."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._root = schema
        self._places = Places(schema)
        self._finite: set[int] = set()
        self._joins: dict[int, list[dict[str, Any]] | None] = {}
        self._visits = 0

    def is_finite(self) -> bool:
        waiting = [node for _, node in all_nodes(self._root, ()) if isinstance(node, dict)]
        grown: list[dict[str, Any]] | None = None
        while grown != []:
            if self._visits > _MOST_VISITS:
                return True
            grown = [node for node in waiting if self._ends(node)]
            self._finite.update(map(id, grown))
            waiting = [node for node in waiting if id(node) not in self._finite]
        return id(self._root) in self._finite

    def _is_known(self, node: Node) -> bool:
        return node if isinstance(node, bool) else id(node) in self._finite

    def _ends(self, node: dict[str, Any]) -> bool:
        joined = self._joined(node)
        self._visits += len(joined or ())
        if joined is None or not _has_value(joined, self._is_known):
            return False
        for part in joined:
            for keyword in ("anyOf", "oneOf"):
                if keyword in part and not any(self._ends_with(joined, choice) for choice in part[keyword]):
                    return False
        return True

    def _ends_with(self, joined: list[dict[str, Any]], choice: Node) -> bool:
        """Whether a choice has a finite value by itself, and one that satisfies the schemas beside it."""
        if isinstance(choice, bool):
            return choice
        if id(choice) not in self._finite:
            return False
        inside = self._joined(choice)
        self._visits += len(joined) + len(inside or ())
        return inside is not None and _has_value([*joined, *inside], self._is_known)

    def _joined(self, node: dict[str, Any]) -> list[dict[str, Any]] | None:
        """All schemas that apply to the same value as this one; None when one of them is false, or refers to itself."""
        if id(node) not in self._joins:
            self._joins[id(node)] = self._join(node, {})
        return self._joins[id(node)]

    def _join(self, node: Node, seen: dict[int, bool]) -> list[dict[str, Any]] | None:
        """`seen` maps visited schemas to whether their visit has ended."""
        if isinstance(node, bool):
            return [] if node else None
        if id(node) in seen:
            return [] if seen[id(node)] else None
        seen[id(node)] = False
        parts: list[Node] = list(node.get("allOf", ()))
        if "$ref" in node and (target := self._places.target(node["$ref"])) is not None:
            parts.append(target)
        joined = [node]
        for part in parts:
            more = self._join(part, seen)
            if more is None:
                return None
            joined += more
        seen[id(node)] = True
        return joined


def _has_value(joined: list[dict[str, Any]], is_known: Callable[[Node], bool]) -> bool:
    """Whether a finite value satisfies all of these, without regard to their choices."""
    if any("enum" in part or "const" in part for part in joined):
        return True
    kinds = set.intersection(*(_kinds(part) for part in joined))
    if kinds - {"array", "object"}:
        return True
    return ("array" in kinds and _has_array(joined, is_known)) or ("object" in kinds and _has_object(joined, is_known))


def _kinds(part: dict[str, Any]) -> set[str]:
    named = part.get("type", TYPES)
    kinds = {named} if isinstance(named, str) else set(named)
    return kinds | {"integer"} if "number" in kinds else kinds


def _has_array(joined: list[dict[str, Any]], is_known: Callable[[Node], bool]) -> bool:
    least = max(part.get("minItems", 0) for part in joined)
    if least > min(part.get("maxItems", _UNLIMITED) for part in joined):
        return False
    for part in joined:
        first = part.get("prefixItems", [])
        if not all(map(is_known, first[:least])):
            return False
        if least > len(first) and not is_known(part.get("items", True)):
            return False
    return True


def _has_object(joined: list[dict[str, Any]], is_known: Callable[[Node], bool]) -> bool:
    required = {name for part in joined for name in part.get("required", ())}
    most = min(part.get("maxProperties", _UNLIMITED) for part in joined)
    least = max(part.get("minProperties", 0) for part in joined)
    if len(required) > most or least > most:
        return False
    if not all(_may_have(name, joined, is_known) for name in required):
        return False
    named = {name for part in joined for name in part.get("properties", ())} | required
    if sum(_may_have(name, joined, is_known) for name in named) >= least:
        return True
    return all(_may_have_others(part, is_known) for part in joined)


def _may_have(name: str, joined: Iterable[dict[str, Any]], is_known: Callable[[Node], bool]) -> bool:
    """Whether a property of this name has a finite value; patterns are not matched."""
    return all(
        is_known(part["properties"][name]) if name in part.get("properties", {}) else _may_have_others(part, is_known)
        for part in joined
    )


def _may_have_others(part: dict[str, Any], is_known: Callable[[Node], bool]) -> bool:
    patterns = part.get("patternProperties", {}).values()
    return is_known(part.get("additionalProperties", True)) or any(map(is_known, patterns))
