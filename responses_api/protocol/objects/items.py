"""Items in answers: of any type, and those that the server generates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired

from pydantic import GetPydanticSchema, with_config
from typing_extensions import TypedDict

Phase = Literal["commentary", "final_answer"]
GeneratedStatus = Literal["in_progress", "completed", "incomplete"]


@with_config(extra="allow")
class Item(TypedDict):
    """An item of a turn, such as a message, a call or reasoning."""

    id: str
    type: str


WireItem = Annotated[dict[str, Any], GetPydanticSchema(lambda _, handler: handler.generate_schema(Item))]
"""An item of any type, with the fields of its type."""


class TokenLogprob(TypedDict):
    """The log-probability of one token."""

    token: str
    bytes: list[int]
    logprob: float


class Logprob(TokenLogprob):
    """The log-probability of a generated token, and those of the likeliest tokens at its position."""

    top_logprobs: list[TokenLogprob]


class OutputText(TypedDict):
    """A part of the assistant's message."""

    type: Literal["output_text"]
    text: str
    annotations: list[object]
    logprobs: list[Logprob]


class ReasoningText(TypedDict):
    """A part of the model's reasoning."""

    type: Literal["reasoning_text"]
    text: str


class GeneratedMessage(Item):
    """A message of the assistant."""

    status: GeneratedStatus
    role: Literal["assistant"]
    content: list[OutputText]
    phase: NotRequired[Phase]


class GeneratedReasoning(Item):
    """The model's reasoning. There is never a summary."""

    status: GeneratedStatus
    summary: Sequence[object]
    content: list[ReasoningText]
    encrypted_content: NotRequired[str]


class GeneratedCall(Item):
    """A call of a tool that the client runs, without its arguments or input."""

    status: GeneratedStatus
    call_id: str
    name: str
    namespace: NotRequired[str]


class GeneratedFunctionCall(GeneratedCall):
    """A call of a function."""

    arguments: str


class GeneratedCustomCall(GeneratedCall):
    """A call of a custom tool."""

    input: str


class GeneratedCompaction(Item):
    """Replaces a compacted history."""

    encrypted_content: str
