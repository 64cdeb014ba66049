"""The body of `POST /v1/chat/completions`.

What a Responses request has under the same name has the same type here. `parse_chat` raises nothing but an ApiError
(400) that names one error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Never, Self

from pydantic import AfterValidator, Field, model_validator

from responses_api.chat.messages import Messages
from responses_api.chat.response_format import ResponseFormat
from responses_api.chat.tools import ChatToolChoice, ChatTools
from responses_api.protocol.items.base import Json
from responses_api.protocol.json.values import describe
from responses_api.protocol.requests import parameters as p
from responses_api.protocol.requests import sampling as s
from responses_api.protocol.validation.base import WireModel, refusal
from responses_api.protocol.validation.markers import Allows, AtMost, Refused
from responses_api.protocol.validation.parsing import parse_body

MAX_MODALITIES = 2


def _check_n(value: int) -> int:
    if value > 1:
        reason = f"is {value}, and this server gives one answer per request; send 1, or more requests"
        raise refusal("unsupported_parameter", reason)
    if value < 1:
        raise refusal("invalid_value", f"must be 1, but it is {value}")
    return value


def _check_store(value: bool) -> bool:
    if value:
        reason = "is true, and chat completions are not stored here; leave it out, or use `POST /responses`"
        raise refusal("unsupported_parameter", reason)
    return value


def _check_modality(value: str) -> str:
    if value == "audio":
        raise refusal("unsupported_parameter", "is 'audio', and the models here answer with text; send 'text' only")
    if value != "text":
        raise refusal("invalid_value", f"must be 'text', but it is {describe(value)}")
    return value


def _refuse_state(value: object) -> Never:
    raise refusal("unsupported_parameter", "is not a parameter of a chat completion; use `POST /responses`")


def _refuse_deprecated(value: object) -> Never:
    raise refusal("unsupported_parameter", "is deprecated and not supported here; send `tools` and `tool_choice`")


OfResponses = Annotated[Any, Refused(_refuse_state)]
Deprecated = Annotated[Any, Refused(_refuse_deprecated)]


class ChatStreamOptions(WireModel):
    """`include_usage` adds a last chunk with the usage. No obfuscation is sent."""

    include_usage: bool = False
    include_obfuscation: bool = False


class CreateChatCompletion(WireModel):
    """A request for a chat completion. None means that the server chooses."""

    moved_fields: ClassVar[Mapping[str, str]] = {
        "input": "messages",
        "instructions": "messages",
        "prompt": "messages",
        "system": "messages",
        "max_output_tokens": "max_completion_tokens",
        "reasoning": "reasoning_effort",
        "text": "response_format",
    }

    model: p.ModelName | None = None
    messages: Messages
    stream: bool = False
    stream_options: ChatStreamOptions | None = None
    max_completion_tokens: p.Positive | None = None
    max_tokens: p.Positive | None = None
    temperature: p.Temperature | None = None
    top_p: p.TopP | None = None
    stop: s.Stop | None = None
    seed: s.Seed | None = None
    presence_penalty: s.Penalty | None = None
    frequency_penalty: s.Penalty | None = None
    logit_bias: s.LogitBias | None = None
    logprobs: bool = False
    top_logprobs: p.TopLogprobs | None = None
    response_format: ResponseFormat | None = None
    tools: ChatTools = ()
    tool_choice: ChatToolChoice | None = None
    parallel_tool_calls: bool | None = None
    reasoning_effort: p.Effort | None = None
    verbosity: p.Verbosity | None = None
    metadata: p.Metadata | None = None

    # our extensions
    top_k: s.TopK | None = None
    min_p: s.MinP | None = None
    repetition_penalty: s.RepetitionPenalty | None = None
    chat_template_kwargs: s.TemplateArguments | None = None
    enable_thinking: bool | None = None

    # validated, and echoed or ignored as documented
    user: p.User | None = None
    safety_identifier: p.SafetyIdentifier | None = None
    prompt_cache_key: p.PromptCacheKey | None = None
    prompt_cache_options: p.PromptCacheOptions | None = None
    prompt_cache_retention: p.PromptCacheRetention | None = None
    service_tier: p.ServiceTier | None = None
    modalities: (
        Annotated[
            tuple[Annotated[str, AfterValidator(_check_modality), Allows(const="text")], ...],
            Field(strict=False, fail_fast=True),
            AtMost(MAX_MODALITIES),
        ]
        | None
    ) = None
    prediction: Json | None = None
    n: Annotated[int, AfterValidator(_check_n), Allows(const=1)] | None = None
    store: Annotated[bool, AfterValidator(_check_store), Allows(const=False)] | None = None

    # refused unless null
    audio: p.Unsupported = None
    moderation: p.Unsupported = None
    web_search_options: p.Unsupported = None
    functions: Deprecated = None
    function_call: Deprecated = None
    previous_response_id: OfResponses = None
    conversation: OfResponses = None
    background: OfResponses = None

    @model_validator(mode="after")
    def _check_whole(self) -> Self:
        if not self.messages:
            raise refusal("invalid_value", "is empty; send at least one message", field="messages")
        if self.max_tokens is not None and self.max_completion_tokens not in (None, self.max_tokens):
            reason = f"is {self.max_tokens}, and `max_completion_tokens` is {self.max_completion_tokens}; send one"
            raise refusal("invalid_value", reason, field="max_tokens")
        if self.top_logprobs is not None and not self.logprobs:
            reason = "has no effect without `logprobs`; send `logprobs: true` with it, or leave it out"
            raise refusal("invalid_value", reason, field="top_logprobs")
        if self.stream_options is not None and not self.stream:
            reason = "is for streams; send `stream: true` with it, or leave it out"
            raise refusal("invalid_value", reason, field="stream_options")
        arguments = self.chat_template_kwargs or {}
        if self.enable_thinking is not None and arguments.get("enable_thinking") not in (None, self.enable_thinking):
            reason = "differs from `chat_template_kwargs.enable_thinking`; send one"
            raise refusal("invalid_value", reason, field="enable_thinking")
        return self

    @property
    def token_limit_name(self) -> str:
        """The parameter that limits the answer."""
        return "max_tokens" if self.max_completion_tokens is None and self.max_tokens else "max_completion_tokens"

    @property
    def includes_usage(self) -> bool:
        """Whether the stream ends with a chunk that has the usage."""
        return self.stream_options is not None and self.stream_options.include_usage


def parse_chat(payload: object) -> CreateChatCompletion:
    """Check a request body. Raises an ApiError (400) that names one error."""
    return parse_body(CreateChatCompletion, payload)
