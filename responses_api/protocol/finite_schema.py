"""Whether some value of finite size satisfies a JSON Schema, which may hold itself."""

from __future__ import annotations

from typing import Any

from responses_api.protocol.schema_nodes import TYPES, all_nodes


def is_finite(schema: dict[str, Any]) -> bool:
    """Whether some finite value may satisfy it: grown from the leaves, since a schema can hold itself."""
    nodes = [node for _, node in all_nodes(schema, ()) if not isinstance(node, bool)]
    finite: set[int] = set()
    grew = True
    while grew:
        grown = [node for node in nodes if id(node) not in finite and _ends(node, schema, finite)]
        finite |= {id(node) for node in grown}
        grew = bool(grown)
    return id(schema) in finite


def _ends(node: dict[str, Any], root: dict[str, Any], finite: set[int]) -> bool:
    def ends(child: Any) -> bool:
        return child is not False and (not isinstance(child, dict) or id(child) in finite)

    if "$ref" in node and not ends(_target(root, node["$ref"])):
        return False
    if not all(ends(child) for child in node.get("allOf", [])):
        return False
    if any(not any(map(ends, node[keyword])) for keyword in ("anyOf", "oneOf") if keyword in node):
        return False
    if "enum" in node or "const" in node:
        return True
    kinds = node.get("type", TYPES)
    kinds = {kinds} if isinstance(kinds, str) else set(kinds)
    if kinds - {"array", "object"}:
        return True
    if "array" in kinds:
        least, first = node.get("minItems", 0), node.get("prefixItems", [])
        if all(map(ends, first[:least])) and (least <= len(first) or ends(node.get("items", True))):
            return True
    others, properties = node.get("additionalProperties", True), node.get("properties", {})
    return "object" in kinds and all(ends(properties.get(name, others)) for name in node.get("required", []))


def _target(root: dict[str, Any], reference: str) -> Any:
    """What a reference into the schema names; True where that is for the decoder to find."""
    if reference == "#":
        return root
    found: Any = root
    for step in reference.removeprefix("#/").split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            return True
    return found
