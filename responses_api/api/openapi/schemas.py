"""JSON Schemas of bodies and of answers, generated from the protocol's types."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypeAliasType

from responses_api.protocol.validation.markers import NOTHING

Json = dict[str, Any]
Named = type | TypeAliasType

PREFIX: Final = "#/components/schemas/"
REFS: Final = PREFIX + "{model}"
NULL: Final[Json] = {"type": "null"}


class WireSchema(GenerateJsonSchema):
    """Pydantic's generator without titles of fields, which would repeat their names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def components(*, sent: Iterable[type], answered: Iterable[Named]) -> Json:
    """The schemas of bodies, with those that they refer to, and of objects, by name."""
    bodies = {name: nullable(cleaned(schema)) for name, schema in definitions(sent).items()}
    update = bodies["UpdateConversation"]["properties"]
    update["metadata"] = {"anyOf": [update["metadata"], dict(NULL)]}
    objects = answered_schemas(answered)
    if both := bodies.keys() & objects.keys():
        raise ValueError(f"The names {sorted(both)} stand for what is sent and for what is answered.")
    return dict(sorted({**bodies, **objects}.items()))


def definitions(types: Iterable[Named]) -> Json:
    """The types' schemas and those that they refer to, by name.

    In the order of their names: a type without a configuration of its own has that of the type that refers to it first.
    """
    named: list[Any] = sorted(types, key=lambda type: type.__name__)
    _, result = TypeAdapter.json_schemas(
        [(type, "validation", TypeAdapter(type)) for type in named], ref_template=REFS, schema_generator=WireSchema
    )
    defined: Json = result["$defs"]
    return defined


def answered_schemas(types: Iterable[Named]) -> Json:
    """The objects' schemas by name, and those of the alternatives of a union. Others are written inline."""
    defined = definitions(types)
    names = {type.__name__ for type in types}
    names |= {alternative for name in names for alternative in alternatives(defined[name])}
    return {name: inlined(defined[name], defined, names) for name in sorted(names)}


def alternatives(schema: Json) -> set[str]:
    """The names of the types that a union is made of."""
    found: set[str] = set()
    for branch in schema.get("oneOf", ()):
        found |= {branch["$ref"].removeprefix(PREFIX)} if "$ref" in branch else alternatives(branch)
    return found


def inlined(schema: Any, defined: Json, names: Collection[str]) -> Any:
    """A schema with references replaced by what they refer to, except for those to ``names``."""
    if isinstance(schema, list):
        return [inlined(entry, defined, names) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    name = schema.get("$ref", "").removeprefix(PREFIX)
    if name and name not in names:
        return inlined(defined[name], defined, names)
    return {
        key: inlined(value, defined, names)
        for key, value in schema.items()
        if key != "title" and not (key == "discriminator" and is_nested(value))
    }


def is_nested(discriminator: Json) -> bool:
    """Whether it chooses between unions, for which OpenAPI has no form."""
    return not all(isinstance(choice, str) for choice in discriminator["mapping"].values())


def cleaned(schema: Json) -> Json:
    """The schema without union branches that allow nothing, and without null defaults."""
    result: Json = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            result[key] = {name: cleaned(inner) for name, inner in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            result[key] = cleaned(value)
        elif key in ("anyOf", "oneOf"):
            result[key] = [branch for branch in map(cleaned, value) if branch != NOTHING]
            if not result[key]:
                return dict(NOTHING)
        elif not (key == "default" and value is None):
            result[key] = value
    for key in ("anyOf", "oneOf"):
        if len(result.get(key, ())) == 1:
            result |= result.pop(key)[0]
    return result


def nullable(schema: Json) -> Json:
    """The schema with null allowed for every field that may be absent, at every depth."""
    result: Json = {}
    for key, value in schema.items():
        if key == "properties":
            required = schema.get("required", ())
            result[key] = {
                name: nullable(field) if name in required else or_null(field) for name, field in value.items()
            }
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            result[key] = nullable(value)
        elif key in ("anyOf", "oneOf"):
            result[key] = [nullable(branch) for branch in value]
        else:
            result[key] = value
    return result


def or_null(schema: Json) -> Json:
    """The schema of a field that may be null."""
    if schema in (NOTHING, NULL):
        return {**NULL, "description": "Refused by name, unless null."}
    inner = nullable(schema)
    if not inner or NULL in inner.get("anyOf", ()):
        return inner
    about: Json = {key: inner.pop(key) for key in ("default", "description") if key in inner}
    return {"anyOf": [*(inner["anyOf"] if set(inner) == {"anyOf"} else [inner]), dict(NULL)], **about}


def query_parameters(model: type[BaseModel]) -> list[Json]:
    """A query model's arguments. Unsupported ones are left out."""
    schema = cleaned(model.model_json_schema(schema_generator=WireSchema))
    parameters = []
    for name, argument in schema["properties"].items():
        if NOTHING.items() <= argument.items():
            continue
        if NULL in argument.get("anyOf", ()):
            argument = next(branch for branch in argument["anyOf"] if branch != NULL)
        parameter: Json = {"name": name, "in": "query", "required": False, "schema": argument}
        if argument.get("type") == "array":
            parameter |= {"style": "form", "explode": True, "description": "Also taken as `include[]`."}
        parameters.append(parameter)
    return parameters


def component(type: Named) -> Json:
    """A reference to the schema of a type."""
    return {"$ref": REFS.format(model=type.__name__)}
