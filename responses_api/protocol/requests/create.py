"""The body of `POST /v1/responses`.

`parse_create` takes any JSON value and returns a checked, frozen request or raises the one ApiError that names the
place and the fix. It never raises anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, ClassVar, Never, Self

from pydantic import (
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    model_validator,
)

from inference.calls import Tool as ModelTool
from responses_api.protocol.items.base import ClientId
from responses_api.protocol.items.input import InputItems
from responses_api.protocol.json.values import describe
from responses_api.protocol.requests import parameters as p
from responses_api.protocol.requests import sampling as s
from responses_api.protocol.requests.conversations import ConversationId
from responses_api.protocol.tools.choice import ToolChoice, callable_indexes, is_forced
from responses_api.protocol.tools.declared import DeclaredTool, Tools, check_tools, declared_tools
from responses_api.protocol.validation.base import OTHER, TAG_PREFIX, WireModel, is_admitted, refusal, tag_of_shape
from responses_api.protocol.validation.markers import Refused
from responses_api.protocol.validation.parsing import parse_body, restore_body


def _refuse_input(value: object) -> Never:
    raise refusal("invalid_value", f"must be a string or an array of input items, but it is {describe(value)}")


Input = Annotated[
    Annotated[str, Tag(TAG_PREFIX + "text")] | InputItems | Annotated[Never, Refused(_refuse_input), Tag(OTHER)],
    Discriminator(tag_of_shape({str: "text", list: "items"})),
]


class CreateResponse(WireModel):
    """A request for a response. None means that the server chooses."""

    moved_fields: ClassVar[Mapping[str, str]] = {
        "messages": "input",
        "prompt_text": "input",
        "system": "instructions",
        "max_tokens": "max_output_tokens",
        "max_completion_tokens": "max_output_tokens",
        "response_format": "text.format",
        "reasoning_effort": "reasoning.effort",
        "verbosity": "text.verbosity",
        "functions": "tools",
        "function_call": "tool_choice",
    }

    model: p.ModelName | None = None
    input: Input = ()
    instructions: str | None = None
    previous_response_id: ClientId | None = None
    conversation: ConversationId | None = None
    store: bool | None = None
    stream: bool = False
    background: bool = False
    metadata: p.Metadata = Field(default_factory=dict)
    temperature: p.Temperature | None = None
    top_p: p.TopP | None = None
    max_output_tokens: p.Positive | None = None
    context_management: p.ContextManagement = ()
    text: p.TextConfig = p.TextConfig()
    truncation: p.Truncation = "disabled"

    # our extensions
    chat_template_kwargs: s.TemplateArguments = Field(default_factory=dict)
    frequency_penalty: s.Penalty = 0
    logit_bias: s.LogitBias = Field(default_factory=dict)
    min_p: s.MinP = 0
    presence_penalty: s.Penalty = 0
    repetition_penalty: s.RepetitionPenalty = 1
    seed: s.Seed | None = None
    stop: s.Stop = ()
    top_k: s.TopK = 0

    # tools, reasoning, and output in addition to the text
    include: p.Include = ()
    reasoning: p.Reasoning = p.Reasoning()
    tool_choice: ToolChoice = "auto"
    tools: Tools = ()
    top_logprobs: p.TopLogprobs = 0

    # validated and echoed, or ignored as documented
    user: p.User | None = None
    safety_identifier: p.SafetyIdentifier | None = None
    prompt_cache_key: p.PromptCacheKey | None = None
    prompt_cache_options: p.PromptCacheOptions | None = None
    prompt_cache_retention: p.PromptCacheRetention | None = None
    max_tool_calls: p.Positive | None = None
    service_tier: p.ServiceTier = "default"
    client_metadata: p.ClientMetadata | None = None
    stream_options: p.StreamOptions | None = None
    parallel_tool_calls: bool = True

    # refused unless null
    access_programs: p.Unsupported = None
    background_options: p.Unsupported = None
    image: p.Unsupported = None
    moderation: p.Unsupported = None
    personality: p.Unsupported = None
    prompt: p.Unsupported = None

    @model_validator(mode="after")
    def _check_whole(self, info: ValidationInfo) -> Self:
        if not is_admitted(info):
            self._check_input()
            self._check_tools()
        return self

    def _check_input(self) -> None:
        if self.previous_response_id is not None and self.conversation is not None:
            reason = "can't be sent together with `previous_response_id`; send one of the two"
            raise refusal("invalid_value", reason, field="conversation")
        if self.input == () and self.previous_response_id is None and self.conversation is None:
            reason = "is missing; send a string or at least one item, or continue a response by `previous_response_id`"
            raise refusal("missing_required_parameter", reason, field="input")
        if self.stop_strings and self.text.format.type != "text":
            reason = "would cut the JSON that `text.format` asks for; leave one of the two out"
            raise refusal("invalid_value", reason, field="stop")
        if not isinstance(self.input, str):
            for index, item in enumerate(self.input[:-1]):
                if item.type == "compaction_trigger":
                    reason = "asks for a compaction and must be the last item"
                    raise refusal("invalid_value", reason, field=f"input[{index}]")

    def _check_tools(self) -> None:
        check_tools(self.tools, self.declared_tools)
        if self._callable_indexes and self.stop_strings:
            reason = "would cut the calls that `tools` allow; leave it out, or send 'none' as `tool_choice`"
            raise refusal("invalid_value", reason, field="stop")

    @cached_property
    def declared_tools(self) -> tuple[DeclaredTool, ...]:
        """The declared functions and custom tools."""
        return declared_tools(self.tools)

    @cached_property
    def callable_tools(self) -> tuple[ModelTool, ...]:
        """The declared tools for the model's dialect, in order. Slow for schemas whose size was not checked."""
        return tuple(tool.for_model() for tool in self.declared_tools)

    @property
    def shown_tools(self) -> tuple[ModelTool, ...]:
        """The tools that the prompt shows."""
        return () if self.tool_choice == "none" else self.callable_tools

    @property
    def offered_tools(self) -> tuple[ModelTool, ...]:
        """The tools that the model may call."""
        return tuple(self.callable_tools[index] for index in self._callable_indexes)

    @cached_property
    def _callable_indexes(self) -> tuple[int, ...]:
        return callable_indexes(self.tool_choice, self.declared_tools)

    @property
    def must_call(self) -> bool:
        """Whether the answer must be a call."""
        return is_forced(self.tool_choice)

    @property
    def wants_logprobs(self) -> bool:
        return self.top_logprobs > 0 or p.LOGPROBS in self.include

    @property
    def wants_encrypted_reasoning(self) -> bool:
        return p.ENCRYPTED_REASONING in self.include

    @property
    def stop_strings(self) -> tuple[str, ...]:
        """The answer ends before the first of these."""
        return (self.stop,) if isinstance(self.stop, str) else self.stop

    @property
    def asks_for_compaction(self) -> bool:
        """Whether its input ends in a `compaction_trigger`: the answer is a compaction item alone."""
        return not isinstance(self.input, str) and bool(self.input) and self.input[-1].type == "compaction_trigger"


def parse_create(payload: object) -> CreateResponse:
    """Check a request body. Raises an ApiError (400) that names one error."""
    return parse_body(CreateResponse, payload)


def restore_create(text: str) -> CreateResponse:
    """An admitted request, from its body as stored JSON text. Raises what `restore_body` does."""
    return restore_body(CreateResponse, text)
