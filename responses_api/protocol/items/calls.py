"""Items that agents send back: calls of client tools, their outputs, and the model's reasoning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from responses_api.protocol.items.base import CallId, ClientId, Item, ItemStatus, Json
from responses_api.protocol.items.content import (
    InputParts,
    OtherContent,
    ReasoningText,
    SummaryText,
    Text,
    content_shape,
)

MAX_NAME_LENGTH = 256  # longer than a tool's name may be here, since replayed calls also come from other servers

ToolName = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH)]
Output = Annotated[Text | InputParts | OtherContent, content_shape]


class _Call(Item):
    call_id: CallId
    name: ToolName
    namespace: ToolName | None = None
    status: ItemStatus = "completed"
    caller: Json | None = None
    async_: Annotated[bool | None, Field(alias="async")] = None
    created_by: str | None = None


class _CallOutput(Item):
    call_id: CallId
    output: Output
    name: ToolName | None = None
    namespace: ToolName | None = None
    status: ItemStatus = "completed"
    caller: Json | None = None
    created_by: str | None = None


class FunctionCall(_Call):
    """The arguments remain the generated text, even if it is incomplete JSON."""

    type: Literal["function_call"]
    arguments: str


class FunctionCallOutput(_CallOutput):
    type: Literal["function_call_output"]


class CustomToolCall(_Call):
    type: Literal["custom_tool_call"]
    input: str


class CustomToolCallOutput(_CallOutput):
    type: Literal["custom_tool_call_output"]


class ReasoningItem(Item):
    """May be empty, and may have only `encrypted_content`."""

    type: Literal["reasoning"]
    summary: Annotated[tuple[SummaryText, ...], Field(strict=False, fail_fast=True)] = ()
    content: Annotated[tuple[ReasoningText, ...], Field(strict=False, fail_fast=True)] | None = None
    encrypted_content: str | None = None
    status: ItemStatus | None = None


class CompactionItem(Item):
    """A compacted history. The blob is opaque here."""

    type: Literal["compaction"]
    encrypted_content: str
    created_by: str | None = None


class CompactionTrigger(Item):
    """The last item of an input: asks for a compaction. It is not part of the history."""

    type: Literal["compaction_trigger"]


class ItemReference(Item):
    """Refers to a stored item, which a service puts in its place."""

    type: Literal["item_reference"] = "item_reference"
    id: ClientId

    def wire(self) -> Json:
        return {"type": "item_reference", "id": self.id}
