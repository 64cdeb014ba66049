"""References within a JSON Schema: JSON pointers in URI fragments, percent-encoded and `~`-escaped (RFC 6901)."""

from __future__ import annotations

from urllib.parse import quote, unquote

from responses_api.protocol.schema_nodes import Node, all_nodes

Pointer = tuple[str, ...]


def pointer(reference: str) -> Pointer | None:
    """The steps that a reference such as `#/%24defs/a~1b` takes from the root; None for one that is no pointer."""
    if not reference.startswith("#"):
        return None
    fragment = unquote(reference[1:])
    if fragment and not fragment.startswith("/"):
        return None
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in fragment.split("/")[1:])


def canonical(reference: str) -> str:
    """The same reference in the one spelling that a decoder and a comparison of texts can rely on."""
    steps = pointer(reference)
    if steps is None:
        return reference
    return "#" + "".join(f"/{quote(step.replace('~', '~0').replace('/', '~1'), safe='$~')}" for step in steps)


class Places:
    """The subschemas of a schema by their pointers."""

    def __init__(self, root: Node) -> None:
        self._nodes = {tuple(map(str, place)): node for place, node in all_nodes(root, ())}

    def target(self, reference: str) -> Node | None:
        """The subschema that a reference names; None when it leads to none."""
        steps = pointer(reference)
        return None if steps is None else self._nodes.get(steps)
