"""The base of all input items."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema

from responses_api.ids import MAX_CLIENT_ID_LENGTH, is_client_id
from responses_api.protocol.items.content import InputText, ReasoningText, SummaryText
from responses_api.protocol.json.values import describe
from responses_api.protocol.validation.base import WireModel, refusal
from responses_api.protocol.validation.markers import Allows

ItemStatus = Literal["in_progress", "completed", "incomplete"]


def _is_object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise refusal("invalid_value", f"must be an object, but it is {describe(value)}")
    return value


Json = Annotated[
    dict[str, Any], PlainValidator(_is_object), WithJsonSchema({"type": "object", "additionalProperties": True})
]
"""Any object, unchanged and not copied: pydantic would copy it in one step, whatever its size."""


def _check_id(value: str) -> str:
    if not is_client_id(value):
        raise refusal("invalid_value", f"must have 1 to {MAX_CLIENT_ID_LENGTH} characters")
    return value


def _storable_id(value: str) -> str | None:
    """None for an id that is too long to be stored: the item gets one of ours."""
    if not value:
        raise refusal("invalid_value", "must have at least 1 character; leave it out, and the item gets an id")
    return value if is_client_id(value) else None


ClientId = Annotated[str, AfterValidator(_check_id), Allows(minLength=1, maxLength=MAX_CLIENT_ID_LENGTH)]
CallId = Annotated[str, Field(min_length=1)]
"""The id by which an output names its call. Of any length, since it is looked up within one history."""


class Item(WireModel):
    """An item of the input. `wire` is the item as `input_items` lists it, without its id.

    Other providers make ids of any length, for their own use: one that is too long to be stored counts as absent.
    """

    listed_nulls: ClassVar[tuple[str, ...]] = ()  # fields that a listed item has even when they are null

    id: Annotated[str, AfterValidator(_storable_id), Allows(minLength=1)] | None = None

    def wire(self) -> Json:
        listed = {}
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if name != "id" and (value is not None or name in self.listed_nulls):
                listed[field.alias or name] = _wire_value(value)
        return listed


def _wire_value(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_wire_value(entry) for entry in value]
    return value.wire() if isinstance(value, SummaryText | ReasoningText | InputText) else value
