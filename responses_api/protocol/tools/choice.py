"""`tool_choice`: whether the model may call, must call, and which of the declared tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal, Never

from pydantic import Discriminator, Field, Tag

from responses_api.protocol.json.values import describe
from responses_api.protocol.tools.client import CALLABLE_TYPES
from responses_api.protocol.tools.declared import HOSTED_TYPES, MAX_TOOLS, DeclaredTool, HostedTool
from responses_api.protocol.validation.base import (
    OTHER,
    TAG_PREFIX,
    WireModel,
    closest,
    refusal,
    refuse_type,
    tag_of_type,
)
from responses_api.protocol.validation.markers import AtMost, Refused

WORDS: Final = ("auto", "none", "required")
TYPES: Final = (*CALLABLE_TYPES, "allowed_tools")
HOSTED_CHOICES: Final = (*HOSTED_TYPES, "computer_use")


def _refuse_choice(value: object) -> Never:
    if isinstance(value, dict):
        kind = value.get("type")
        if kind in HOSTED_CHOICES:
            reason = f"asks for the tool '{kind}', which this server can't run; send 'auto', or choose a function"
            raise refusal("unsupported_parameter", reason, field="type")
        refuse_type(value, TYPES)
    known = ", ".join(f"'{word}'" for word in WORDS)
    reason = f"must be one of {known}, or an object, but it is {describe(value)}{closest(value, WORDS)}"
    raise refusal("invalid_value", reason)


def _refuse_entry(value: object) -> Never:
    refuse_type(value, (*CALLABLE_TYPES, *HOSTED_TYPES))


class NamedTool(WireModel):
    """One declared tool. Without `namespace`, it is outside of all namespaces, or the only one of its name."""

    moved_fields: ClassVar[Mapping[str, str]] = {"function": "name"}

    type: Literal["function", "custom"]
    name: str
    namespace: str | None = None

    def wire(self) -> dict[str, Any]:
        named = {"type": self.type, "name": self.name}
        return named if self.namespace is None else {**named, "namespace": self.namespace}


def _tag_of_entry(value: Any) -> str:
    kind = tag_of_type(*CALLABLE_TYPES, *HOSTED_TYPES)(value).removeprefix(TAG_PREFIX)
    return TAG_PREFIX + ("named" if kind in CALLABLE_TYPES else "hosted" if kind in HOSTED_TYPES else kind)


def _tag_of_choice(value: Any) -> str:
    if isinstance(value, str) and value in WORDS:
        return TAG_PREFIX + "word"
    kind = tag_of_type(*TYPES)(value)
    return TAG_PREFIX + "named" if kind.removeprefix(TAG_PREFIX) in CALLABLE_TYPES else kind


class AllowedTools(WireModel):
    """The model is shown all tools but may call only these."""

    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"]
    tools: Annotated[
        tuple[
            Annotated[
                Annotated[NamedTool, Tag(TAG_PREFIX + "named")]
                | Annotated[HostedTool, Tag(TAG_PREFIX + "hosted")]
                | Annotated[Never, Refused(_refuse_entry), Tag(OTHER)],
                Discriminator(_tag_of_entry),
            ],
            ...,
        ],
        Field(strict=False, fail_fast=True),
        AtMost(MAX_TOOLS),
    ]

    def wire(self) -> dict[str, Any]:
        return {"type": "allowed_tools", "mode": self.mode, "tools": [tool.wire() for tool in self.tools]}


Word = Literal["auto", "none", "required"]
ToolChoice = Annotated[
    Annotated[Word, Tag(TAG_PREFIX + "word")]
    | Annotated[NamedTool, Tag(TAG_PREFIX + "named")]
    | Annotated[AllowedTools, Tag(TAG_PREFIX + "allowed_tools")]
    | Annotated[Never, Refused(_refuse_choice), Tag(OTHER)],
    Discriminator(_tag_of_choice),
]


def choice_wire(choice: ToolChoice) -> str | dict[str, Any]:
    """The choice as a response echoes it."""
    return choice if isinstance(choice, str) else choice.wire()


def is_forced(choice: ToolChoice) -> bool:
    """Whether the answer must be a call."""
    if isinstance(choice, AllowedTools):
        return choice.mode == "required"
    return choice == "required" or isinstance(choice, NamedTool)


def callable_indexes(choice: ToolChoice, declared: Sequence[DeclaredTool]) -> tuple[int, ...]:
    """The indexes of the declared tools that may be called.

    Refuses names that no tool has, and a required call without a tool to call.
    """
    if choice == "none":
        return ()
    if isinstance(choice, NamedTool):
        return (_find(choice, declared, "tool_choice"),)
    if isinstance(choice, AllowedTools):
        named = {
            _find(entry, declared, f"tool_choice.tools[{index}]")
            for index, entry in enumerate(choice.tools)
            if isinstance(entry, NamedTool)
        }
        indexes = tuple(sorted(named))
    else:
        indexes = tuple(range(len(declared)))
    if is_forced(choice) and not indexes:
        reason = "asks for a call, but there is no function or custom tool to call; declare one in `tools`"
        raise refusal("invalid_value", reason, field="tool_choice")
    return indexes


def _find(choice: NamedTool, declared: Sequence[DeclaredTool], place: str) -> int:
    if choice.namespace is not None:
        namespaces = {entry.namespace for entry in declared if entry.namespace is not None}
        if choice.namespace not in namespaces:
            near = closest(choice.namespace, sorted(namespaces)) or "; declare it in `tools`"
            reason = f"is {describe(choice.namespace)}, which no declared namespace is called{near}"
            raise refusal("invalid_value", reason, field=f"{place}.namespace")
    candidates = [
        (index, entry)
        for index, entry in enumerate(declared)
        if entry.tool.type == choice.type and (choice.namespace is None or entry.namespace == choice.namespace)
    ]
    matches = [(index, entry) for index, entry in candidates if entry.tool.name == choice.name]
    without_namespace = [(index, entry) for index, entry in matches if entry.namespace is None]
    if len(matches) > 1 and not without_namespace:
        names = ", ".join(f"'{entry.namespace}'" for _, entry in matches[:4])
        reason = f"is a name in several namespaces ({names}); send `namespace`, too"
        raise refusal("invalid_value", reason, field=f"{place}.name")
    if not matches:
        near = closest(choice.name, sorted({entry.tool.name for _, entry in candidates})) or "; declare it in `tools`"
        kind = "function" if choice.type == "function" else "custom tool"
        reason = f"is {describe(choice.name)}, which no declared {kind} is called{near}"
        raise refusal("invalid_value", reason, field=f"{place}.name")
    return (without_namespace or matches)[0][0]
