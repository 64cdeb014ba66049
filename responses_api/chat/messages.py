"""The messages of a chat: a union tagged by `role`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Never

from pydantic import Discriminator, Field, Tag

from responses_api.chat.content import AnswerContent, InputContent, InstructionContent, LenientModel
from responses_api.protocol.items.base import CallId
from responses_api.protocol.items.calls import ToolName
from responses_api.protocol.items.input import MAX_INPUT_ITEMS
from responses_api.protocol.json.values import describe
from responses_api.protocol.requests.parameters import Unsupported
from responses_api.protocol.validation.base import OTHER, TAG_PREFIX, WireModel, closest, refusal
from responses_api.protocol.validation.markers import Allows, AtMost, Refused

ROLES = ("system", "developer", "user", "assistant", "tool")
CALL_TYPES = ("function", "custom")
MAX_NAME = 64

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
"""The name of a participant: validated, and not shown to the model."""


class ChatInstructions(WireModel):
    """Instructions of the system or the developer."""

    role: Literal["system", "developer"]
    content: InstructionContent
    name: Name | None = None


class ChatUserMessage(WireModel):
    """A message of the user."""

    role: Literal["user"]
    content: InputContent
    name: Name | None = None


class ReplayedFunction(LenientModel):
    """The function of a call. The arguments are the generated text, even if it is incomplete JSON."""

    name: ToolName
    arguments: str


class ReplayedCustom(LenientModel):
    """The custom tool of a call."""

    name: ToolName
    input: str


class ReplayedFunctionCall(LenientModel):
    """A call of a function in an earlier answer."""

    id: CallId
    type: Literal["function"] = "function"
    function: ReplayedFunction


class ReplayedCustomCall(LenientModel):
    """A call of a custom tool in an earlier answer."""

    id: CallId
    type: Literal["custom"]
    custom: ReplayedCustom


def _tag_of_call(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else OTHER
    if kind is None:
        kind = "function"  # some clients leave the type out
    return TAG_PREFIX + kind if isinstance(kind, str) and kind in CALL_TYPES else OTHER


def _refuse_call(value: object) -> Never:
    if not isinstance(value, dict):
        raise refusal("invalid_value", f"must be an object, but it is {describe(value)}")
    known = ", ".join(f"'{kind}'" for kind in CALL_TYPES)
    raise refusal("invalid_value", f"must be one of {known}, but it is {describe(value['type'])}", field="type")


ToolCall = Annotated[
    Annotated[ReplayedFunctionCall, Tag(TAG_PREFIX + "function")]
    | Annotated[ReplayedCustomCall, Tag(TAG_PREFIX + "custom")]
    | Annotated[Never, Refused(_refuse_call), Tag(OTHER)],
    Discriminator(_tag_of_call),
]


class ChatAssistantMessage(LenientModel):
    """An earlier answer: its reasoning, its text, its calls. Unknown fields are ignored."""

    role: Literal["assistant"]
    content: AnswerContent | None = None
    refusal: str | None = None
    tool_calls: Annotated[tuple[ToolCall, ...], Field(strict=False, fail_fast=True), AtMost(MAX_INPUT_ITEMS)] = ()
    reasoning_content: str | None = None
    reasoning: str | None = None
    name: Name | None = None
    audio: Unsupported = None
    function_call: Unsupported = None

    @property
    def thinking(self) -> tuple[str, str]:
        """The field that has the reasoning, and the reasoning; empty without any."""
        if self.reasoning_content:
            return "reasoning_content", self.reasoning_content
        return "reasoning", self.reasoning or ""


class ChatToolMessage(WireModel):
    """The output of a tool that an earlier answer called."""

    role: Literal["tool"]
    tool_call_id: CallId
    content: InputContent
    name: Name | None = None


def _tag_of_message(value: Any) -> str:
    role = value.get("role") if isinstance(value, dict) else None
    if role in ("system", "developer"):
        return TAG_PREFIX + "instructions"
    return TAG_PREFIX + role if isinstance(role, str) and role in ROLES else OTHER


def _refuse_message(value: object) -> Never:
    if not isinstance(value, dict):
        raise refusal("invalid_value", f"must be an object, a message, but it is {describe(value)}")
    role = value.get("role")
    known = ", ".join(f"'{role}'" for role in ROLES)
    if role is None:
        raise refusal("missing_required_parameter", f"is missing; send one of {known}", field="role")
    if role == "function":
        reason = "is 'function', which is deprecated; send the role 'tool' with a `tool_call_id`"
        raise refusal("unsupported_parameter", reason, field="role")
    reason = f"must be one of {known}, but it is {describe(role)}{closest(role, ROLES)}"
    raise refusal("invalid_value", reason, field="role")


Message = Annotated[
    Annotated[ChatInstructions, Tag(TAG_PREFIX + "instructions")]
    | Annotated[ChatUserMessage, Tag(TAG_PREFIX + "user")]
    | Annotated[ChatAssistantMessage, Tag(TAG_PREFIX + "assistant")]
    | Annotated[ChatToolMessage, Tag(TAG_PREFIX + "tool")]
    | Annotated[Never, Refused(_refuse_message), Tag(OTHER)],
    Discriminator(_tag_of_message),
]
Messages = Annotated[
    tuple[Message, ...], Field(strict=False, fail_fast=True), AtMost(MAX_INPUT_ITEMS), Allows(minItems=1)
]
