"""The tools that the client runs: functions, which take arguments, and custom tools, which take text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Never

from pydantic import AfterValidator, Discriminator, Field, Tag

from inference.calls import CustomFormat
from inference.calls import Tool as ModelTool
from responses_api.protocol.json.values import describe
from responses_api.protocol.schemas.check import enforceable_part
from responses_api.protocol.validation.base import OTHER, TAG_PREFIX, WireModel, refusal, refuse_type, tag_of_type
from responses_api.protocol.validation.markers import Allows, Refused
from responses_api.protocol.validation.names import Name

CALLABLE_TYPES: Final = ("function", "custom")
FORMATS: Final = ("text", "grammar")
NO_ARGUMENTS: Final = {"type": "object", "properties": {}, "additionalProperties": False}


def _refuse_format(value: object) -> Never:
    refuse_type(value, FORMATS)


def _check_parameters(value: dict[str, Any]) -> dict[str, Any]:
    if value.get("type", "object") != "object":
        reason = f"must be 'object', since arguments are an object, but it is {describe(value['type'])}"
        raise refusal("invalid_value", reason, field="type")
    return value


Parameters = Annotated[
    dict[str, Any], AfterValidator(_check_parameters), Allows(properties={"type": {"const": "object"}})
]
"""The JSON Schema of a function's arguments."""


class PlainInput(WireModel):
    type: Literal["text"]

    def wire(self) -> dict[str, Any]:
        return {"type": "text"}


class GrammarInput(WireModel):
    """The grammar that a custom tool's input must match."""

    type: Literal["grammar"]
    syntax: Literal["lark", "regex"]
    definition: str

    def wire(self) -> dict[str, Any]:
        return {"type": "grammar", "syntax": self.syntax, "definition": self.definition}


InputFormat = Annotated[
    Annotated[PlainInput, Tag(TAG_PREFIX + "text")]
    | Annotated[GrammarInput, Tag(TAG_PREFIX + "grammar")]
    | Annotated[Never, Refused(_refuse_format), Tag(OTHER)],
    Discriminator(tag_of_type(*FORMATS)),
]


class _ClientTool(WireModel):
    """A tool that the client runs."""

    name: Name
    description: str | None = None
    allowed_callers: (
        Annotated[tuple[Literal["direct", "programmatic"], ...], Field(strict=False, fail_fast=True)] | None
    ) = None
    defer_loading: bool | None = None
    async_: Annotated[bool | None, Field(alias="async")] = None

    def _options(self) -> dict[str, Any]:
        callers = None if self.allowed_callers is None else list(self.allowed_callers)
        options = {"allowed_callers": callers, "defer_loading": self.defer_loading, "async": self.async_}
        return {name: value for name, value in options.items() if value is not None}


class FunctionTool(_ClientTool):
    """`strict` adds OpenAI's rules for the schema; the enforceable part of a schema is enforced in any case."""

    moved_fields: ClassVar[Mapping[str, str]] = {
        "function": "name",
        "input_schema": "parameters",
        "schema": "parameters",
    }

    type: Literal["function"]
    parameters: Parameters | None = None
    strict: bool = False
    output_schema: dict[str, Any] | None = None

    def wire(self) -> dict[str, Any]:
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            "strict": self.strict,
            **self._options(),
            **({} if self.output_schema is None else {"output_schema": self.output_schema}),
        }

    @property
    def schema_of_arguments(self) -> dict[str, Any]:
        """The schema of the arguments, always that of an object."""
        return NO_ARGUMENTS if self.parameters is None else {"type": "object", **self.parameters}

    def for_model(self, namespace: str | None) -> ModelTool:
        schema = self.schema_of_arguments
        part = enforceable_part(schema)
        return ModelTool(
            name=self.name,
            namespace=namespace,
            description=self.description or "",
            parameters=schema,
            enforced=part is not None,
            rules=part,
        )


class CustomTool(_ClientTool):
    """Takes text, not arguments."""

    type: Literal["custom"]
    format: InputFormat = PlainInput(type="text")

    def wire(self) -> dict[str, Any]:
        return {
            "type": "custom",
            "name": self.name,
            "description": self.description,
            "format": self.format.wire(),
            **self._options(),
        }

    def for_model(self, namespace: str | None) -> ModelTool:
        form = self.format
        grammar = CustomFormat(syntax=form.syntax, definition=form.definition) if form.type == "grammar" else None
        return ModelTool(
            name=self.name, namespace=namespace, description=self.description or "", custom=True, format=grammar
        )


ClientTool = FunctionTool | CustomTool
