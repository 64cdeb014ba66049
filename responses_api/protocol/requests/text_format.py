"""`text.format`: free text, any JSON object, or JSON that satisfies a schema, which is checked at creation."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, Never

from pydantic import Discriminator, Field, Tag

from inference.types import Constraint
from responses_api.protocol.schemas.decoder import enforceable
from responses_api.protocol.validation.base import OTHER, TAG_PREFIX, WireModel, refuse_type, tag_of_type
from responses_api.protocol.validation.markers import Refused
from responses_api.protocol.validation.names import Name

KINDS = ("text", "json_schema", "json_object")


def _refuse_format(value: object) -> Never:
    refuse_type(value, KINDS)


class PlainText(WireModel):
    type: Literal["text"]

    def wire(self) -> dict[str, Any]:
        return {"type": "text"}

    @property
    def instruction(self) -> str:
        """The instruction about the format for the model."""
        return ""

    @property
    def constraint(self) -> Constraint | None:
        return None


class JsonObject(WireModel):
    type: Literal["json_object"]

    def wire(self) -> dict[str, Any]:
        return {"type": "json_object"}

    @property
    def instruction(self) -> str:
        """The instruction about the format for the model."""
        return "Answer with one JSON object and nothing else."

    @property
    def constraint(self) -> Constraint | None:
        return Constraint(kind="json_object")


class JsonSchema(WireModel):
    """`strict` adds OpenAI's rules for the schema; the answer satisfies it in any case."""

    type: Literal["json_schema"]
    name: Name
    json_schema: Annotated[dict[str, Any], Field(alias="schema")]
    description: str | None = None
    strict: bool = False

    def wire(self) -> dict[str, Any]:
        return {
            "type": "json_schema",
            "name": self.name,
            "description": self.description,
            "schema": self.json_schema,
            "strict": self.strict,
        }

    @property
    def instruction(self) -> str:
        """The instruction about the format for the model."""
        about = f" It is: {self.description.rstrip('.')}." if self.description else ""
        schema = json.dumps(self.json_schema, ensure_ascii=False)
        return f"Answer with JSON and nothing else, as this JSON Schema says.{about}\n{schema}"

    @property
    def constraint(self) -> Constraint | None:
        return Constraint(kind="json_schema", text=json.dumps(enforceable(self.json_schema)))


TextFormat = Annotated[
    Annotated[PlainText, Tag(TAG_PREFIX + "text")]
    | Annotated[JsonObject, Tag(TAG_PREFIX + "json_object")]
    | Annotated[JsonSchema, Tag(TAG_PREFIX + "json_schema")]
    | Annotated[Never, Refused(_refuse_format), Tag(OTHER)],
    Discriminator(tag_of_type(*KINDS)),
]
