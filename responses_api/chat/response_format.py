"""`response_format` of a chat, with its form for `POST /responses`: `text.format`, which is flat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Never

from pydantic import Discriminator, Field, Tag

from responses_api.protocol.requests.text_format import KINDS
from responses_api.protocol.validation.base import OTHER, TAG_PREFIX, WireModel, refuse_type, tag_of_type
from responses_api.protocol.validation.markers import Refused
from responses_api.protocol.validation.names import Name


def _refuse_format(value: object) -> Never:
    refuse_type(value, KINDS)


class ChatTextFormat(WireModel):
    """Free text."""

    type: Literal["text"]

    def wire(self) -> dict[str, Any]:
        return {"type": "text"}


class ChatJsonObject(WireModel):
    """Any JSON object."""

    type: Literal["json_object"]

    def wire(self) -> dict[str, Any]:
        return {"type": "json_object"}


class ChatSchema(WireModel):
    """A JSON Schema; without one, any object. `strict` adds OpenAI's rules for the schema."""

    name: Name
    json_schema: Annotated[dict[str, Any] | None, Field(alias="schema")] = None
    description: str | None = None
    strict: bool = False


class ChatJsonSchema(WireModel):
    """JSON that satisfies a schema."""

    moved_fields: ClassVar[Mapping[str, str]] = {name: f"json_schema.{name}" for name in ("name", "schema", "strict")}

    type: Literal["json_schema"]
    json_schema: ChatSchema

    def wire(self) -> dict[str, Any]:
        named = self.json_schema
        if named.json_schema is None:
            return {"type": "json_object"}
        form: dict[str, Any] = {
            "type": "json_schema", "name": named.name, "schema": named.json_schema, "strict": named.strict
        }  # fmt: skip
        return form if named.description is None else {**form, "description": named.description}


FIELDS: Mapping[str, str] = {name: f"json_schema.{name}" for name in ("name", "schema", "description", "strict")}
"""Names within `text.format`, and the names here."""

ResponseFormat = Annotated[
    Annotated[ChatTextFormat, Tag(TAG_PREFIX + "text")]
    | Annotated[ChatJsonObject, Tag(TAG_PREFIX + "json_object")]
    | Annotated[ChatJsonSchema, Tag(TAG_PREFIX + "json_schema")]
    | Annotated[Never, Refused(_refuse_format), Tag(OTHER)],
    Discriminator(tag_of_type(*KINDS)),
]
