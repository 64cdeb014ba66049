"""Events of a stream: one type per form. Sequence numbers count from 0 without gaps."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType, TypedDict

from responses_api.protocol.objects.fields import Count
from responses_api.protocol.objects.items import Logprob, OutputItem, OutputText, ReasoningText
from responses_api.protocol.objects.response import Response

ResponseEventType = Literal[
    "response.created",
    "response.queued",
    "response.in_progress",
    "response.completed",
    "response.incomplete",
    "response.failed",
]


class Numbered(TypedDict):
    """The place of an event in the stream."""

    sequence_number: Count


class ItemPlace(Numbered):
    """The place of an event in the stream, and the item that it belongs to."""

    item_id: str
    output_index: Count


class PartPlace(ItemPlace):
    """The place of an event in the stream, and the part of an item that it belongs to."""

    content_index: Count


class ResponseEvent(Numbered):
    """The state of the response has changed."""

    type: ResponseEventType
    response: Response


class OutputItemEvent(Numbered):
    """An output item was added or is done."""

    type: Literal["response.output_item.added", "response.output_item.done"]
    output_index: Count
    item: OutputItem


class ContentPartEvent(PartPlace):
    """A content part was added or is done."""

    type: Literal["response.content_part.added", "response.content_part.done"]
    part: OutputText | ReasoningText


class OutputTextDelta(PartPlace):
    """More text of a message."""

    type: Literal["response.output_text.delta"]
    delta: str
    logprobs: list[Logprob]


class OutputTextDone(PartPlace):
    """The complete text of a message."""

    type: Literal["response.output_text.done"]
    text: str
    logprobs: list[Logprob]


class ReasoningTextDelta(PartPlace):
    """More text of the model's reasoning."""

    type: Literal["response.reasoning_text.delta"]
    delta: str


class ReasoningTextDone(PartPlace):
    """The complete text of the model's reasoning."""

    type: Literal["response.reasoning_text.done"]
    text: str


class FunctionCallDelta(ItemPlace):
    """More text of a function call's arguments."""

    type: Literal["response.function_call_arguments.delta"]
    delta: str


class FunctionCallDone(ItemPlace):
    """The arguments of a completed function call."""

    type: Literal["response.function_call_arguments.done"]
    arguments: str


class CustomToolCallDelta(ItemPlace):
    """More text of a custom tool's input."""

    type: Literal["response.custom_tool_call_input.delta"]
    delta: str


class CustomToolCallDone(ItemPlace):
    """The input of a completed call of a custom tool."""

    type: Literal["response.custom_tool_call_input.done"]
    input: str


class CompactingEvent(ItemPlace):
    """The item replaces a compacted history."""

    type: Literal["response.compaction.compacting"]


class CompactionStarted(Numbered):
    """An extension: the history was compacted because of `context_management`."""

    type: Literal["mlx.compaction.started"]
    response_id: str
    input_tokens: Count


class CompactionCompleted(Numbered):
    """An extension: the number of tokens of the history before and after its compaction."""

    type: Literal["mlx.compaction.completed"]
    response_id: str
    input_tokens_before: Count
    input_tokens_after: Count


class ErrorEvent(Numbered):
    """The reason why the stream ends. `response.failed` follows, except for a cancelled job."""

    type: Literal["error"]
    code: str | None
    message: str
    param: None


Delta = OutputTextDelta | ReasoningTextDelta | FunctionCallDelta | CustomToolCallDelta
StreamEvent = TypeAliasType(
    "StreamEvent",
    Annotated[
        ResponseEvent
        | OutputItemEvent
        | ContentPartEvent
        | Delta
        | OutputTextDone
        | ReasoningTextDone
        | FunctionCallDone
        | CustomToolCallDone
        | CompactingEvent
        | CompactionStarted
        | CompactionCompleted
        | ErrorEvent,
        Field(description="An event of a stream.", discriminator="type"),
    ],
)


def error_event(code: str | None, message: str, *, sequence_number: int) -> ErrorEvent:
    """The event of an error, after which the stream ends."""
    return {"type": "error", "sequence_number": sequence_number, "code": code, "message": message, "param": None}
