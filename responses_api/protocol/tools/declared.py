"""`tools`: functions and custom tools that the client runs, namespaces of them, and hosted tools.

A union tagged by `type`. Hosted tools can't be run here: they are echoed as they were sent, and not shown to
the model. `declared_tools` lists the others in order, out of their namespaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, Never, get_args

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from inference.calls import Tool as ModelTool
from responses_api.protocol.json.values import Path, format_path
from responses_api.protocol.tools.client import CALLABLE_TYPES, ClientTool, CustomTool, FunctionTool
from responses_api.protocol.validation.base import (
    OTHER,
    TAG_PREFIX,
    WireModel,
    refusal,
    refuse_type,
    tag_of_type,
)
from responses_api.protocol.validation.markers import AtMost, Refused
from responses_api.protocol.validation.names import Name

MAX_TOOLS: Final = 128
SECRETS: Final = frozenset(("authorization", "headers"))

HostedType = Literal[
    "apply_patch", "code_interpreter", "computer", "computer_use_preview", "file_search", "image_generation",
    "local_shell", "mcp", "programmatic_tool_calling", "shell", "tool_search", "web_search", "web_search_2025_08_26",
    "web_search_preview", "web_search_preview_2025_03_11",
]  # fmt: skip
HOSTED_TYPES: Final[tuple[str, ...]] = get_args(HostedType)
TYPES: Final = (*CALLABLE_TYPES, "namespace", *HOSTED_TYPES)


def _refuse_tool(value: object) -> Never:
    refuse_type(value, TYPES)


def _refuse_member(value: object) -> Never:
    refuse_type(value, CALLABLE_TYPES)


Member = Annotated[
    Annotated[FunctionTool, Tag(TAG_PREFIX + "function")]
    | Annotated[CustomTool, Tag(TAG_PREFIX + "custom")]
    | Annotated[Never, Refused(_refuse_member), Tag(OTHER)],
    Discriminator(tag_of_type(*CALLABLE_TYPES)),
]


class Namespace(WireModel):
    """Tools under a common name; a call has both names."""

    type: Literal["namespace"]
    name: Name
    description: str = ""
    tools: Annotated[
        tuple[Member, ...],
        Field(strict=False, fail_fast=True),
        AtMost(MAX_TOOLS),
    ]

    def wire(self) -> dict[str, Any]:
        return {
            "type": "namespace",
            "name": self.name,
            "description": self.description,
            "tools": [tool.wire() for tool in self.tools],
        }


class HostedTool(BaseModel):
    """A tool that this server can't run. Its other fields are kept unchanged, also nulls; secrets become null."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow")

    type: HostedType

    def wire(self) -> dict[str, Any]:
        return {"type": self.type, **{key: None if key in SECRETS else value for key, value in self._fields()}}

    def _fields(self) -> Iterable[tuple[str, Any]]:
        return (self.model_extra or {}).items()


def _tag_of_tool(value: Any) -> str:
    tag = tag_of_type(*TYPES)(value)
    return TAG_PREFIX + "hosted" if tag.removeprefix(TAG_PREFIX) in HOSTED_TYPES else tag


Tool = FunctionTool | CustomTool | Namespace | HostedTool
Tools = Annotated[
    tuple[
        Annotated[
            Annotated[FunctionTool, Tag(TAG_PREFIX + "function")]
            | Annotated[CustomTool, Tag(TAG_PREFIX + "custom")]
            | Annotated[Namespace, Tag(TAG_PREFIX + "namespace")]
            | Annotated[HostedTool, Tag(TAG_PREFIX + "hosted")]
            | Annotated[Never, Refused(_refuse_tool), Tag(OTHER)],
            Discriminator(_tag_of_tool),
        ],
        ...,
    ],
    Field(strict=False, fail_fast=True),
    AtMost(MAX_TOOLS),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredTool:
    """A tool that the client runs, and the place of its declaration."""

    path: Path
    namespace: str | None
    tool: ClientTool
    purpose: str = ""
    """The description of its namespace."""

    def for_model(self) -> ModelTool:
        tool = self.tool.for_model(self.namespace)
        return replace(tool, description=" ".join(filter(None, (self.purpose, tool.description))))


def declared_tools(tools: Sequence[Tool]) -> tuple[DeclaredTool, ...]:
    """The functions and custom tools in order, including those in namespaces."""
    declared: list[DeclaredTool] = []
    for index, tool in enumerate(tools):
        path: Path = ("tools", index)
        if isinstance(tool, Namespace):
            declared += [
                DeclaredTool(path=(*path, "tools", number), namespace=tool.name, tool=member, purpose=tool.description)
                for number, member in enumerate(tool.tools)
            ]
        elif not isinstance(tool, HostedTool):
            declared.append(DeclaredTool(path=path, namespace=None, tool=tool))
    return tuple(declared)


def check_tools(tools: Sequence[Tool], declared: Sequence[DeclaredTool]) -> None:
    """Refuse too many tools, and two of the same name."""
    count = len(declared) + sum(isinstance(tool, HostedTool) for tool in tools)
    if count > MAX_TOOLS:
        reason = f"must declare at most {MAX_TOOLS} tools, those of namespaces counted, but it declares {count}"
        raise refusal("invalid_value", reason, field="tools")
    seen: dict[tuple[str | None, str], str] = {}
    for entry in declared:
        key = (entry.namespace, entry.tool.name)
        place = str(format_path(entry.path))
        if key in seen:
            reason = f"is '{entry.tool.name}', as the name of `{seen[key]}` is; each tool needs a name of its own"
            raise refusal("invalid_value", reason, field=f"{place}.name")
        seen[key] = place
