"""The items of `input`: a union tagged by `type`, which a message may omit, and by a message's role."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Never

from pydantic import BeforeValidator, Discriminator, Field, Tag, TypeAdapter

from responses_api.ids import Prefix
from responses_api.protocol.items.base import ClientId as ClientId
from responses_api.protocol.items.base import Item, ItemStatus, Json
from responses_api.protocol.items.calls import (
    CompactionItem,
    CompactionTrigger,
    CustomToolCall,
    CustomToolCallOutput,
    FunctionCall,
    FunctionCallOutput,
    ItemReference,
    ReasoningItem,
)
from responses_api.protocol.items.content import InputParts, OtherContent, OutputParts, Text, content_shape
from responses_api.protocol.items.hosted import HOSTED_TYPES, HostedItem
from responses_api.protocol.json.values import describe
from responses_api.protocol.validation.base import OTHER, TAG_PREFIX, closest, refusal
from responses_api.protocol.validation.markers import AtMost, Refused

Phase = Literal["commentary", "final_answer"]

MAX_INPUT_ITEMS = 20_000  # each takes time and rows, even one without text, which the context's length doesn't bound

ROLES = ("user", "assistant", "system", "developer")

_PREFIXES: dict[str, Prefix] = {
    "message": "msg_",
    "function_call": "fc_",
    "function_call_output": "fco_",
    "custom_tool_call": "ctc_",
    "custom_tool_call_output": "ctco_",
    "reasoning": "rs_",
    "compaction": "cmp_",
}
OWN_TYPES = (*(kind for kind in _PREFIXES if kind != "message"), "item_reference", "compaction_trigger")
LATER_TYPES = ("additional_tools", "configuration_update")


def item_prefix(item_type: str) -> Prefix:
    """The prefix of the id of a new item of this type."""
    return _PREFIXES.get(item_type, "item_")


def _check_role(value: object) -> object:
    if value not in ROLES:
        right = "one of 'user', 'assistant', 'system' and 'developer'"
        raise refusal("invalid_value", f"must be {right}, but it is {describe(value)}{closest(value, ROLES)}")
    return value


class _Message(Item):
    type: Literal["message"] = "message"
    status: ItemStatus = "completed"
    phase: Phase | None = None

    def _wire(self, role: str, content: list[Json]) -> Json:
        item: Json = {"type": "message", "role": role, "status": self.status, "content": content}
        return item if self.phase is None else {**item, "phase": self.phase}


class InputMessage(_Message):
    """A message of the user, the system or the developer."""

    role: Annotated[Literal["user", "system", "developer"], BeforeValidator(_check_role)]
    content: Annotated[Text | InputParts | OtherContent, content_shape]

    def wire(self) -> Json:
        if isinstance(self.content, str):
            return self._wire(self.role, [{"type": "input_text", "text": self.content}])
        return self._wire(self.role, [part.wire() for part in self.content])


class AssistantMessage(_Message):
    """A message of the assistant from an earlier turn."""

    role: Literal["assistant"]
    content: Annotated[Text | OutputParts | OtherContent, content_shape]

    def wire(self) -> Json:
        if isinstance(self.content, str):
            part = {"type": "output_text", "text": self.content, "annotations": [], "logprobs": []}
            return self._wire(self.role, [part])
        return self._wire(self.role, [part.wire() for part in self.content])


def _tag_of_item(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else OTHER
    if kind is None and "id" in value and value.get("role") is None and value.get("content") is None:
        return TAG_PREFIX + "item_reference"  # the one other item that may leave out its type
    if kind is None or kind == "message":
        return TAG_PREFIX + ("assistant" if value.get("role") == "assistant" else "message")
    if not isinstance(kind, str):
        return OTHER
    if kind in HOSTED_TYPES:
        return TAG_PREFIX + "hosted"
    return TAG_PREFIX + kind if kind in OWN_TYPES else OTHER


def _refuse_item(value: object) -> Never:
    if not isinstance(value, dict):
        raise refusal("invalid_value", f"must be an object, an input item, but it is {describe(value)}")
    kind = value["type"]
    if isinstance(kind, str) and kind in LATER_TYPES:
        raise refusal(
            "unsupported_parameter", f"has the type '{kind}', which this server does not support yet; remove it"
        )
    advice = closest(kind, ("message", *OWN_TYPES, *HOSTED_TYPES, *LATER_TYPES)) or "; send 'message'"
    raise refusal("invalid_value", f"has the type {describe(kind)}, which is not an input item{advice}")


InputItem = Annotated[
    Annotated[InputMessage, Tag(TAG_PREFIX + "message")]
    | Annotated[AssistantMessage, Tag(TAG_PREFIX + "assistant")]
    | Annotated[FunctionCall, Tag(TAG_PREFIX + "function_call")]
    | Annotated[FunctionCallOutput, Tag(TAG_PREFIX + "function_call_output")]
    | Annotated[CustomToolCall, Tag(TAG_PREFIX + "custom_tool_call")]
    | Annotated[CustomToolCallOutput, Tag(TAG_PREFIX + "custom_tool_call_output")]
    | Annotated[ReasoningItem, Tag(TAG_PREFIX + "reasoning")]
    | Annotated[CompactionItem, Tag(TAG_PREFIX + "compaction")]
    | Annotated[CompactionTrigger, Tag(TAG_PREFIX + "compaction_trigger")]
    | Annotated[ItemReference, Tag(TAG_PREFIX + "item_reference")]
    | Annotated[HostedItem, Tag(TAG_PREFIX + "hosted")]
    | Annotated[Never, Refused(_refuse_item), Tag(OTHER)],
    Discriminator(_tag_of_item),
]
InputItems = Annotated[
    tuple[InputItem, ...],
    Field(strict=False, fail_fast=True),
    AtMost(MAX_INPUT_ITEMS),
    Tag(TAG_PREFIX + "items"),
]

_ITEM: TypeAdapter[InputItem] = TypeAdapter(InputItem)


def parse_item(value: object) -> InputItem:
    """A stored item as an input item. Raises pydantic's error."""
    return _ITEM.validate_python(value)
