"""Random JSON Schemas and tools as programs send them: all satisfiable, strict ones as OpenAI's SDK makes them."""

import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import jsonschema
from hypothesis import strategies as st

Schema = dict[str, Any]

NAMES = st.sampled_from(["a", "name", "x y", "été", 'q"uote', "is_ok", "Zeichen", "n1"])
PATTERNS = ["^[a-z]{2,4}$", "^[0-9]{3}-[0-9]{2}$", "x+y?", "^(ja|nein)$", "^\\w+$", "^$"]
FORMATS = ["date", "date-time", "uuid", "ipv4", "duration"]

CODEX_PATCH = r"""start: begin_patch hunk+ end_patch
begin_patch: "*** Begin Patch" LF
end_patch: "*** End Patch" LF?

hunk: add_hunk | delete_hunk | update_hunk
add_hunk: "*** Add File: " filename LF add_line+
delete_hunk: "*** Delete File: " filename LF
update_hunk: "*** Update File: " filename LF change_move? change?

filename: /(.+)/
add_line: "+" /(.*)/ LF -> line

change_move: "*** Move to: " filename LF
change: (change_context | change_line)+ eof_line?
change_context: ("@@" | "@@ " /(.+)/) LF
change_line: ("+" | "-" | " ") /(.*)/ LF
eof_line: "*** End of File" LF

%import common.LF
"""
"""The grammar of Codex's tool `apply_patch`."""


@st.composite
def _string(draw: st.DrawFn) -> Schema:
    kind = draw(st.sampled_from(["plain", "plain", "bounds", "pattern", "format"]))
    if kind == "pattern":
        return {"type": "string", "pattern": draw(st.sampled_from(PATTERNS))}
    if kind == "format":
        return {"type": "string", "format": draw(st.sampled_from(FORMATS))}
    if kind == "plain":
        return {"type": "string"}
    least = draw(st.integers(0, 4))
    return {"type": "string", "minLength": least, "maxLength": least + draw(st.integers(0, 6))}


@st.composite
def _number(draw: st.DrawFn) -> Schema:
    kind = draw(st.sampled_from(["integer", "number"]))
    least = draw(st.integers(-1000, 1000))
    bounds: list[Schema] = [
        {},
        {"minimum": least},
        {"exclusiveMaximum": least},
        {"minimum": least, "maximum": least + draw(st.integers(0, 50))},
        {"multipleOf": draw(st.sampled_from([1, 5, 12] if kind == "integer" else [0.01, 0.5, 3]))},
    ]
    return {"type": kind, **draw(st.sampled_from(bounds))}


_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-99, 99), st.sampled_from(["", "red", "blau", "日本", "a\nb"])
)
_LEAVES = st.one_of(
    _string(),
    _number(),
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.builds(lambda values: {"enum": values}, st.lists(_VALUES, min_size=1, max_size=4, unique_by=repr)),
    st.builds(lambda value: {"const": value}, _VALUES),
)


def _objects(inner: st.SearchStrategy[Schema], *, strict: bool) -> st.SearchStrategy[Schema]:
    @st.composite
    def build(draw: st.DrawFn) -> Schema:
        properties = draw(st.dictionaries(NAMES, inner, max_size=4))
        required = [name for name in properties if strict or draw(st.booleans())]
        schema: Schema = {"type": "object", "properties": properties, "required": required}
        others: list[Any] = [False] if strict else [False, {"type": "integer"}, None]
        additional = draw(st.sampled_from(others))
        return schema if additional is None else {**schema, "additionalProperties": additional}

    return build()


@st.composite
def _array(draw: st.DrawFn, inner: st.SearchStrategy[Schema]) -> Schema:
    schema: Schema = {"type": "array", "items": draw(inner)}
    if draw(st.booleans()):
        least = draw(st.integers(0, 2))
        schema |= {"minItems": least, "maxItems": least + draw(st.integers(0, 2))}
    if draw(st.integers(0, 3)) == 0:
        schema["prefixItems"] = draw(st.lists(inner, min_size=1, max_size=2))
    return schema


def _unions(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return st.builds(lambda choices: {"anyOf": choices}, st.lists(inner, min_size=1, max_size=3))


def _tree(strict: bool) -> st.SearchStrategy[Schema]:
    leaves = st.one_of(_LEAVES, st.just({"$ref": "#/$defs/list"}))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(_objects(inner, strict=strict), _array(inner), _unions(inner)),
        max_leaves=8,
    )


@st.composite
def schemas(draw: st.DrawFn, *, strict: bool = False) -> Schema:
    """Complete schemas whose root is an object."""
    root = draw(_objects(_tree(strict), strict=strict))
    follower: Schema = {
        "type": "object",
        "properties": {"value": draw(_LEAVES), "next": {"anyOf": [{"$ref": "#/$defs/list"}, {"type": "null"}]}},
        "required": ["value", "next"],
        "additionalProperties": False,
    }
    return {**root, "$defs": {"list": follower}}


@st.composite
def tool_sets(draw: st.DrawFn) -> list[dict[str, Any]]:
    """One to four tools with distinct names: functions, some of them strict, and custom tools."""
    names = st.sampled_from(["find", "add_note", "get-weather", "Lookup2", "x", "do_it_now"])
    tools: list[dict[str, Any]] = []
    for name in draw(st.lists(names, min_size=1, max_size=4, unique=True)):
        if draw(st.integers(0, 4)) == 0:
            tools.append({"type": "custom", "name": name, "description": "Takes a short text."})
            continue
        strict = draw(st.booleans())
        parameters = draw(schemas(strict=strict))
        tools.append({"type": "function", "name": name, "parameters": parameters, "strict": strict})
    return tools


def validate(text: str, schema: Schema) -> None:
    """Raise unless a JSON text matches the schema. `multipleOf` is decimal: 8.11 is a multiple of 0.01."""

    def multiple_of(validator: Any, divisor: Any, value: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
        if validator.is_type(value, "number") and Fraction(str(value)) % Fraction(str(divisor)):
            yield jsonschema.ValidationError(f"{value} is not a multiple of {divisor}")

    exact = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"multipleOf": multiple_of})
    exact(schema).validate(json.loads(text))
