"""Items of tools that another server ran, or that use a machine: stored and listed, but not shown to the model.

Their own fields are checked, so that OpenAI's SDK can read them when they are listed; nested values are stored
unchanged.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, get_args

from pydantic import Discriminator, Field, Tag

from responses_api.protocol.items.base import CallId, Item, ItemStatus, Json
from responses_api.protocol.validation.base import TAG_PREFIX, tag_of_type

Objects = Annotated[list[Json], Field(fail_fast=True)]
Texts = Annotated[list[str], Field(fail_fast=True)]


class _Hosted(Item):
    created_by: str | None = None


class _ShellItem(_Hosted):
    call_id: CallId
    caller: Json | None = None


class WebSearchCall(_Hosted):
    type: Literal["web_search_call"]
    status: Literal["in_progress", "searching", "completed", "failed", "incomplete"] = "completed"
    action: Json


class FileSearchCall(_Hosted):
    type: Literal["file_search_call"]
    status: Literal["in_progress", "searching", "completed", "incomplete", "failed"] = "completed"
    queries: Texts
    results: Objects | None = None


class CodeInterpreterCall(_Hosted):
    listed_nulls: ClassVar[tuple[str, ...]] = ("code", "outputs")

    type: Literal["code_interpreter_call"]
    status: Literal["in_progress", "completed", "incomplete", "interpreting", "failed"] = "completed"
    container_id: str
    code: str | None = None
    outputs: Objects | None = None


class ImageGenerationCall(_Hosted):
    listed_nulls: ClassVar[tuple[str, ...]] = ("result",)

    type: Literal["image_generation_call"]
    status: Literal["in_progress", "completed", "generating", "failed"] = "completed"
    result: str | None = None
    action: Literal["generate", "edit", "auto"] | None = None
    background: Literal["transparent", "opaque", "auto"] | None = None
    error: Json | None = None
    output_format: Literal["png", "webp", "jpeg", "gif", "svg"] | None = None
    quality: Literal["low", "medium", "high", "xhigh", "max", "auto"] | None = None
    revised_prompt: str | None = None
    size: str | None = None
    svg_usage: Json | None = None


class ComputerCall(_Hosted):
    type: Literal["computer_call"]
    status: ItemStatus = "completed"
    call_id: CallId
    action: Json | None = None
    actions: Objects | None = None
    pending_safety_checks: Objects = []


class ComputerCallOutput(_Hosted):
    type: Literal["computer_call_output"]
    status: Literal["in_progress", "completed", "incomplete", "failed"] = "completed"
    call_id: CallId
    output: Json
    acknowledged_safety_checks: Objects | None = None


class LocalShellCall(_Hosted):
    type: Literal["local_shell_call"]
    status: ItemStatus = "completed"
    call_id: CallId
    action: Json


class LocalShellCallOutput(_Hosted):
    type: Literal["local_shell_call_output"]
    status: ItemStatus | None = None
    output: str


class ShellCall(_ShellItem):
    listed_nulls: ClassVar[tuple[str, ...]] = ("environment",)

    type: Literal["shell_call"]
    status: ItemStatus = "completed"
    action: Json
    environment: Json | None = None


class ShellCallOutput(_ShellItem):
    listed_nulls: ClassVar[tuple[str, ...]] = ("max_output_length",)

    type: Literal["shell_call_output"]
    status: ItemStatus = "completed"
    output: Objects
    max_output_length: int | None = None


class ApplyPatchCall(_ShellItem):
    type: Literal["apply_patch_call"]
    status: Literal["in_progress", "completed"]
    operation: Json


class ApplyPatchCallOutput(_ShellItem):
    type: Literal["apply_patch_call_output"]
    status: Literal["completed", "failed"]
    output: str | None = None


class ToolSearchCall(_Hosted):
    listed_nulls: ClassVar[tuple[str, ...]] = ("call_id",)

    type: Literal["tool_search_call"]
    status: ItemStatus = "completed"
    call_id: CallId | None = None
    execution: Literal["server", "client"] = "server"
    arguments: Any


class ToolSearchOutput(_Hosted):
    listed_nulls: ClassVar[tuple[str, ...]] = ("call_id",)

    type: Literal["tool_search_output"]
    status: ItemStatus = "completed"
    call_id: CallId | None = None
    execution: Literal["server", "client"] = "server"
    tools: Objects


class McpCall(_Hosted):
    type: Literal["mcp_call"]
    status: Literal["in_progress", "completed", "incomplete", "calling", "failed"] | None = None
    server_label: str
    name: str
    arguments: str
    output: str | None = None
    error: Any = None  # an object; a sentence in older replays
    approval_request_id: str | None = None


class McpListTools(_Hosted):
    type: Literal["mcp_list_tools"]
    server_label: str
    tools: Objects
    error: Any = None


class McpApprovalRequest(_Hosted):
    type: Literal["mcp_approval_request"]
    server_label: str
    name: str
    arguments: str


class McpApprovalResponse(_Hosted):
    type: Literal["mcp_approval_response"]
    approval_request_id: str
    approve: bool
    reason: str | None = None


class Program(_Hosted):
    type: Literal["program"]
    call_id: CallId
    code: str
    fingerprint: str


class ProgramOutput(_Hosted):
    type: Literal["program_output"]
    call_id: CallId
    result: str
    status: Literal["completed", "incomplete"]


HostedType = Literal[
    "apply_patch_call",
    "apply_patch_call_output",
    "code_interpreter_call",
    "computer_call",
    "computer_call_output",
    "file_search_call",
    "image_generation_call",
    "local_shell_call",
    "local_shell_call_output",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "mcp_list_tools",
    "program",
    "program_output",
    "shell_call",
    "shell_call_output",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
]
HOSTED_TYPES: Final[tuple[str, ...]] = get_args(HostedType)

HostedItem = Annotated[
    Annotated[ApplyPatchCall, Tag(TAG_PREFIX + "apply_patch_call")]
    | Annotated[ApplyPatchCallOutput, Tag(TAG_PREFIX + "apply_patch_call_output")]
    | Annotated[CodeInterpreterCall, Tag(TAG_PREFIX + "code_interpreter_call")]
    | Annotated[ComputerCall, Tag(TAG_PREFIX + "computer_call")]
    | Annotated[ComputerCallOutput, Tag(TAG_PREFIX + "computer_call_output")]
    | Annotated[FileSearchCall, Tag(TAG_PREFIX + "file_search_call")]
    | Annotated[ImageGenerationCall, Tag(TAG_PREFIX + "image_generation_call")]
    | Annotated[LocalShellCall, Tag(TAG_PREFIX + "local_shell_call")]
    | Annotated[LocalShellCallOutput, Tag(TAG_PREFIX + "local_shell_call_output")]
    | Annotated[McpApprovalRequest, Tag(TAG_PREFIX + "mcp_approval_request")]
    | Annotated[McpApprovalResponse, Tag(TAG_PREFIX + "mcp_approval_response")]
    | Annotated[McpCall, Tag(TAG_PREFIX + "mcp_call")]
    | Annotated[McpListTools, Tag(TAG_PREFIX + "mcp_list_tools")]
    | Annotated[Program, Tag(TAG_PREFIX + "program")]
    | Annotated[ProgramOutput, Tag(TAG_PREFIX + "program_output")]
    | Annotated[ShellCall, Tag(TAG_PREFIX + "shell_call")]
    | Annotated[ShellCallOutput, Tag(TAG_PREFIX + "shell_call_output")]
    | Annotated[ToolSearchCall, Tag(TAG_PREFIX + "tool_search_call")]
    | Annotated[ToolSearchOutput, Tag(TAG_PREFIX + "tool_search_output")]
    | Annotated[WebSearchCall, Tag(TAG_PREFIX + "web_search_call")],
    Discriminator(tag_of_type(*HOSTED_TYPES)),
]
