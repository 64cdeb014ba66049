"""The tools that a request declares, as the dialects see them. Plain values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Schema = Mapping[str, Any]

INPUT = "input"
"""The only parameter, a string, of the function as which a custom tool is shown to models."""

_INPUT_SCHEMA: Schema = {
    "type": "object",
    "properties": {INPUT: {"type": "string"}},
    "required": [INPUT],
    "additionalProperties": False,
}
_WORD = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomFormat:
    """The grammar that a custom tool's input must match."""

    syntax: Literal["lark", "regex"]
    definition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One function or custom tool. The model knows it by `shown`, the caller by `name` and `namespace`."""

    name: str
    namespace: str | None = None
    description: str = ""
    parameters: Schema = field(default_factory=lambda: {"type": "object", "properties": {}})
    """JSON Schema of the arguments; not used for custom tools."""
    enforced: bool = False
    """The arguments are constrained to `rules`; else they are any JSON object."""
    rules: Schema | None = None
    """The part of `parameters` that can be enforced, in the form for the decoder; None for all of it."""
    custom: bool = False
    format: CustomFormat | None = None
    """Grammar of a custom tool; None allows any text."""

    def __post_init__(self) -> None:
        for word in (self.name, self.namespace):
            if word is not None and not _WORD.fullmatch(word):
                raise ValueError(f"A tool's name and namespace are 1 to 64 of A-Z a-z 0-9 _ -, which {word!r} is not.")

    @property
    def shown(self) -> str:
        """The name that the model reads and writes: `namespace::name`, or the bare name."""
        return shown_name(self.name, self.namespace)

    @property
    def schema(self) -> Schema:
        """JSON Schema of the arguments that the model writes."""
        return _INPUT_SCHEMA if self.custom else self.parameters

    @property
    def enforced_schema(self) -> Schema:
        """JSON Schema that the arguments of an enforced tool are constrained to."""
        return self.schema if self.custom or self.rules is None else self.rules


def shown_name(name: str, namespace: str | None) -> str:
    return name if namespace is None else f"{namespace}::{name}"


def parameter_types(tool: Tool, parameter: str) -> frozenset[str] | None:
    """The JSON types that a parameter may have by its schema; None if the schema doesn't say."""
    schema = tool.schema
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or parameter not in properties:
        return None
    return _types(properties[parameter], schema, 0)


def _types(schema: Any, root: Schema, depth: int) -> frozenset[str] | None:
    if not isinstance(schema, Mapping) or depth > 16:
        return None
    if isinstance(reference := schema.get("$ref"), str):
        return _types(_resolve(reference, root), root, depth + 1)
    if isinstance(kind := schema.get("type"), str):
        return frozenset((kind,))
    if isinstance(kind, list | tuple):
        return frozenset(map(str, kind))
    if isinstance(values := schema.get("enum"), list | tuple):
        return frozenset(map(json_type, values))
    if "const" in schema:
        return frozenset((json_type(schema["const"]),))
    for choice in ("anyOf", "oneOf"):
        if isinstance(branches := schema.get(choice), list | tuple):
            kinds = [_types(branch, root, depth + 1) for branch in branches]
            known = [kind for kind in kinds if kind is not None]
            return frozenset().union(*known) if len(known) == len(kinds) else None
    if isinstance(parts := schema.get("allOf"), list | tuple) and len(parts) == 1:
        return _types(parts[0], root, depth + 1)
    return None


def _resolve(reference: str, root: Schema) -> Any:
    if reference != "#" and not reference.startswith("#/"):
        return None
    value: Any = root
    for step in reference.split("/")[1:]:
        value = value.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(value, Mapping) else None
    return value


def json_type(value: Any) -> str:
    """The JSON Schema type of a JSON value; whole numbers are "integer"."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "object" if isinstance(value, Mapping) else "array"
