"""Lark for the arguments of a call: as one JSON object, or parameter by parameter."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from inference.calls.tools import INPUT, CustomFormat, Schema, Tool, parameter_types
from inference.grammars.escaped_lark import escaped_lark
from inference.grammars.lark import ANY_TEXT, Grammar, either, json_value, literal
from inference.grammars.patterns import for_json_strings

_OBJECT = {"type": "object"}
_DEFINITIONS = ("$defs", "definitions")
_ROOT = "whole-schema"
_ANY_NAME = "/[A-Za-z_][A-Za-z0-9_]*/"


def json_arguments(tool: Tool) -> str:
    """A JSON object: of the schema if it is enforced, else any."""
    if not tool.custom:
        return json_value(tool.enforced_schema if tool.enforced else _OBJECT)
    if tool.format is not None and tool.format.syntax == "lark":
        return f"{literal(f'{{{json.dumps(INPUT)}: ')} {json_input(tool)} {literal('}')}"
    return json_value({**tool.schema, "properties": {INPUT: _input_schema(tool)}})


def json_input(tool: Tool) -> str:
    """A custom tool's input as a JSON string. Raises Unenforceable."""
    if tool.format is not None and tool.format.syntax == "lark":
        quote = literal('"')
        return f"{quote} %lark {{\n{escaped_lark(tool.format.definition)}\n}} {quote}"
    return json_value(_input_schema(tool))


def _input_schema(tool: Tool) -> Mapping[str, Any]:
    if tool.format is not None and tool.format.syntax == "regex":
        return {"type": "string", "pattern": f"^(?:{for_json_strings(tool.format.definition)})$"}
    return {"type": "string"}


Parameter = Callable[[str, str, bool], str]
"""`parameter(name, value, is_string)`: Lark for one parameter. Its name, and its value with its end, are Lark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The notation of parameters' values in a dialect."""

    raw_strings: bool = True
    """Strings are raw text; else they are JSON, like all other values."""
    string_end: str = ""
    """The end of a raw string."""
    other_end: str = ""
    """The end of any other value."""
    never: tuple[str, ...] = ()
    """Texts that raw strings can't contain, since a parser would take them for the end."""
    between: str = ""
    """The separator of two parameters."""


def parameters(grammar: Grammar, tool: Tool, parameter: Parameter, values: Values) -> str:
    """All parameters, in the order of the schema.

    For raw strings enum, const, length and pattern are enforced. A tool that isn't enforced has any of its declared
    parameters with values of their types, or any parameters if none is declared.
    """
    strict = tool.enforced or tool.custom
    whole = tool.enforced_schema if strict else tool.schema
    properties = whole.get("properties")
    declared = properties if isinstance(properties, Mapping) else {}
    if not declared:
        if strict and whole.get("additionalProperties") is False:
            return ""
        value = _raw_string(grammar, {}, values) if values.raw_strings else grammar.rule(json_value({}))
        single = grammar.rule(parameter(_ANY_NAME, value, values.raw_strings))
        return f"({single} ({literal(values.between)} {single})*)?" if values.between else f"{single}*"
    required = whole.get("required") if strict else ()
    parts = []
    for name, schema in declared.items():
        types = parameter_types(tool, name)
        is_raw = values.raw_strings and (types is None or "string" in types)
        if is_raw and tool.custom and tool.format is not None:
            value = _formatted(grammar, tool.format, values)
        elif is_raw:
            value = _raw_string(grammar, schema if strict and isinstance(schema, Mapping) else {}, values)
        else:
            text = json_input(tool) if tool.custom else json_value(_shape(tool, schema, types, strict=strict))
            value = f"{grammar.rule(text)} {grammar.markup(values.other_end)}"
        parts.append((grammar.rule(parameter(literal(name), value, is_raw)), name in (required or ())))
    return _in_order(grammar, parts, values.between)


def _in_order(grammar: Grammar, parts: list[tuple[str, bool]], between: str) -> str:
    """Each parameter at most once, required ones always."""
    if not between:  # the end of each value separates them
        return " ".join(part if needed else f"{part}?" for part, needed in parts)
    rest, may_be_empty = "", True  # the parameters after the current one, with separators before them
    first: list[str] = []
    for part, needed in reversed(parts):
        tail = f" {rest}" if rest else ""
        first = [f"{part}{tail}", *([] if needed else first)]
        may_be_empty = may_be_empty and not needed
        following = f"{literal(between)} {part}"
        rest = grammar.rule(f"{following if needed else f'({following})?'}{tail}")
    return f"({either(first)})" + ("?" if may_be_empty else "")


def _formatted(grammar: Grammar, form: CustomFormat, values: Values) -> str:
    if form.syntax == "lark":
        return f"{grammar.rule(f'%lark {{{chr(10)}{form.definition}{chr(10)}}}')} {grammar.markup(values.string_end)}"
    return grammar.closed(f"/{_slashed(form.definition)}/", values.string_end, values.never)


def _raw_string(grammar: Grammar, schema: Mapping[str, Any], values: Values) -> str:
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(choices, list | tuple):
        return f"({either(literal(_raw(choice)) for choice in choices)}) {grammar.markup(values.string_end)}"
    shapes = []
    least, most = schema.get("minLength"), schema.get("maxLength")
    if least is not None or most is not None:
        shapes.append(f"/(?s:.){{{least or 0},{'' if most is None else most}}}/")
    if isinstance(pattern := schema.get("pattern"), str):
        before = "" if pattern.startswith("^") else ANY_TEXT
        after = "" if pattern.endswith("$") else ANY_TEXT
        shapes.append(f"/{before}(?:{_slashed(pattern.removeprefix('^').removesuffix('$'))}){after}/")
    return grammar.closed(" & ".join(shapes) or f"/{ANY_TEXT}/", values.string_end, values.never)


def _slashed(pattern: str) -> str:
    return re.sub(r"(?<!\\)/", r"\/", pattern)


def _raw(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shape(tool: Tool, schema: Schema | bool, types: frozenset[str] | None, *, strict: bool) -> Schema:
    """The schema of a parameter with the definitions that it refers to; without enforcement, its types only."""
    if not strict or not isinstance(schema, Mapping) or not schema:
        return {"type": sorted(types)} if types else {}
    whole = tool.enforced_schema
    named = {key: whole[key] for key in _DEFINITIONS if key in whole}
    shape: Schema = _referring({**schema, **named})
    if _ROOT not in json.dumps(shape):
        return shape
    root = _referring({key: value for key, value in whole.items() if key not in _DEFINITIONS})
    return {**shape, "$defs": {**shape.get("$defs", {}), _ROOT: root}}


def _referring(node: Any) -> Any:
    """The schema node with references to the whole schema replaced by references to a definition of it."""
    if isinstance(node, list):
        return [_referring(entry) for entry in node]
    if not isinstance(node, Mapping):
        return node
    moved = {key: _referring(value) for key, value in node.items()}
    reference: Any = moved.get("$ref")
    is_local = isinstance(reference, str) and (reference == "#" or reference.startswith("#/"))
    if is_local and not reference.startswith(tuple(f"#/{key}/" for key in _DEFINITIONS)):
        moved["$ref"] = f"#/$defs/{_ROOT}{reference[1:]}"
    return moved
