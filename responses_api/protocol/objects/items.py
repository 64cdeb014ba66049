"""Items in answers: those that clients sent, and those that the server generates.

An item may have more fields than its type: fields that a client sent are listed unchanged.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field, with_config
from typing_extensions import TypeAliasType, TypedDict

from responses_api.protocol.items.base import ItemStatus as ItemStatus
from responses_api.protocol.items.hosted import HostedType
from responses_api.protocol.items.input import Phase as Phase
from responses_api.protocol.objects.fields import AnyObject


@with_config(extra="allow")
class TokenLogprob(TypedDict):
    """The log-probability of one token."""

    token: str
    bytes: list[int]
    logprob: float


class Logprob(TokenLogprob):
    """The log-probability of a generated token, and those of the likeliest tokens at its position."""

    top_logprobs: list[TokenLogprob]


class InputText(TypedDict):
    """A text part of an input message or of a tool's output."""

    type: Literal["input_text"]
    text: str


class OutputText(TypedDict):
    """A part of the assistant's message."""

    type: Literal["output_text"]
    text: str
    annotations: list[AnyObject]
    logprobs: list[Logprob]


class Refusal(TypedDict):
    """A refusal of the assistant. This server generates none."""

    type: Literal["refusal"]
    refusal: str


class SummaryText(TypedDict):
    """A part of a summary of the reasoning. This server generates none."""

    type: Literal["summary_text"]
    text: str


class ReasoningText(TypedDict):
    """A part of the model's reasoning."""

    type: Literal["reasoning_text"]
    text: str


@with_config(extra="allow")
class _Identified(TypedDict):
    id: str


class InputMessageObject(_Identified):
    """A message of the user, the system or the developer."""

    type: Literal["message"]
    status: ItemStatus
    role: Literal["user", "system", "developer"]
    content: list[InputText]
    phase: NotRequired[Phase]


class AssistantMessageObject(_Identified):
    """A message of the assistant."""

    type: Literal["message"]
    status: ItemStatus
    role: Literal["assistant"]
    content: list[OutputText | Refusal]
    phase: NotRequired[Phase]


class ReasoningObject(_Identified):
    """The model's reasoning."""

    type: Literal["reasoning"]
    status: NotRequired[ItemStatus]
    summary: list[SummaryText]
    content: NotRequired[list[ReasoningText]]
    encrypted_content: NotRequired[str]


class _Call(_Identified):
    status: ItemStatus
    call_id: str
    name: str
    namespace: NotRequired[str]


class FunctionCallObject(_Call):
    """A call of a function."""

    type: Literal["function_call"]
    arguments: str


class CustomToolCallObject(_Call):
    """A call of a custom tool."""

    type: Literal["custom_tool_call"]
    input: str


class _CallOutput(_Identified):
    status: ItemStatus
    call_id: str
    output: str | list[InputText]
    name: NotRequired[str]
    namespace: NotRequired[str]


class FunctionCallOutputObject(_CallOutput):
    """The output of a function."""

    type: Literal["function_call_output"]


class CustomToolCallOutputObject(_CallOutput):
    """The output of a custom tool."""

    type: Literal["custom_tool_call_output"]


class CompactionObject(_Identified):
    """Replaces a compacted history."""

    type: Literal["compaction"]
    encrypted_content: str


class HostedObject(_Identified):
    """An item of a tool that another server ran, or that works on a machine."""

    type: HostedType


OutputItem = TypeAliasType(
    "OutputItem",
    Annotated[
        AssistantMessageObject | ReasoningObject | FunctionCallObject | CustomToolCallObject | CompactionObject,
        Field(description="An item that the server generated.", discriminator="type"),
    ],
)
Item = TypeAliasType(
    "Item",
    Annotated[
        Annotated[InputMessageObject | AssistantMessageObject, Field(discriminator="role")]
        | ReasoningObject
        | FunctionCallObject
        | FunctionCallOutputObject
        | CustomToolCallObject
        | CustomToolCallOutputObject
        | CompactionObject
        | HostedObject,
        Field(description="An item of a turn, such as a message, a call or reasoning.", discriminator="type"),
    ],
)
