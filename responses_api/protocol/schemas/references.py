"""References within a JSON Schema: JSON pointers in URI fragments, percent-encoded and `~`-escaped (RFC 6901)."""

from __future__ import annotations

from urllib.parse import quote, unquote

from responses_api.protocol.schemas.nodes import Node, all_nodes

Pointer = tuple[str, ...]


def pointer(reference: str) -> Pointer | None:
    """The steps that a reference such as `#/%24defs/a~1b` takes from the root; None for one that is not a pointer."""
    if not reference.startswith("#"):
        return None
    fragment = unquote(reference[1:])
    if fragment and not fragment.startswith("/"):
        return None
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in fragment.split("/")[1:])


class Places:
    """The subschemas of a schema by their pointers, and the pointers by their anchors."""

    def __init__(self, root: Node) -> None:
        self._nodes = {tuple(map(str, place)): node for place, node in all_nodes(root, ())}
        self._anchors = {
            node["$anchor"]: place
            for place, node in self._nodes.items()
            if isinstance(node, dict) and isinstance(node.get("$anchor"), str)
        }

    def target(self, reference: str) -> Node | None:
        """The subschema that a reference names; None when it leads to none."""
        steps = self._steps(reference)
        return None if steps is None else self._nodes.get(steps)

    def canonical(self, reference: str) -> str:
        """The same reference as a pointer, in the spelling that the decoder and comparisons rely on."""
        steps = self._steps(reference)
        if steps is None:
            return reference
        return "#" + "".join(f"/{quote(step.replace('~', '~0').replace('/', '~1'), safe='$~')}" for step in steps)

    def _steps(self, reference: str) -> Pointer | None:
        steps = pointer(reference)
        return self._anchors.get(unquote(reference.removeprefix("#"))) if steps is None else steps
