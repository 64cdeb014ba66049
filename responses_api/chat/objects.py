"""The objects of Chat Completions: the answer, and the chunks of a stream."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from responses_api.protocol.objects.fields import Count, Metadata, Timestamp
from responses_api.protocol.objects.items import Logprob

FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


class ChatCalledFunction(TypedDict):
    """The function of a call."""

    name: str
    arguments: str


class ChatCalledCustom(TypedDict):
    """The custom tool of a call."""

    name: str
    input: str


class ChatFunctionCall(TypedDict):
    """A call of a function."""

    id: str
    type: Literal["function"]
    function: ChatCalledFunction


class ChatCustomCall(TypedDict):
    """A call of a custom tool."""

    id: str
    type: Literal["custom"]
    custom: ChatCalledCustom


class ChatLogprobs(TypedDict):
    """The log-probabilities of the text's tokens."""

    content: list[Logprob]
    refusal: None


class ChatAnswer(TypedDict):
    """The model's message. The reasoning has the names that the server is configured for."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    annotations: list[Any]
    tool_calls: NotRequired[list[ChatFunctionCall | ChatCustomCall]]
    reasoning_content: NotRequired[str]
    reasoning: NotRequired[str]


class ChatChoice(TypedDict):
    """The only choice."""

    index: Literal[0]
    message: ChatAnswer
    logprobs: ChatLogprobs | None
    finish_reason: FinishReason


class PromptTokensDetails(TypedDict):
    """Parts of the prompt's tokens."""

    cached_tokens: Count
    cache_write_tokens: Count
    audio_tokens: Literal[0]


class CompletionTokensDetails(TypedDict):
    """Parts of the answer's tokens."""

    reasoning_tokens: Count
    audio_tokens: Literal[0]
    accepted_prediction_tokens: Literal[0]
    rejected_prediction_tokens: Literal[0]


class ChatUsage(TypedDict):
    """Counted tokens. Those of the answer include its reasoning."""

    prompt_tokens: Count
    completion_tokens: Count
    total_tokens: Count
    prompt_tokens_details: PromptTokensDetails
    completion_tokens_details: CompletionTokensDetails


class Head(TypedDict):
    id: str
    created: Timestamp
    model: str
    service_tier: Literal["default"]
    system_fingerprint: str


class ChatCompletion(Head):
    """The answer to a chat."""

    object: Literal["chat.completion"]
    choices: list[ChatChoice]
    usage: ChatUsage | None
    metadata: NotRequired[Metadata]


class FunctionDelta(TypedDict):
    """The name of a function, when its call begins, or more of its arguments."""

    name: NotRequired[str]
    arguments: str


class CustomDelta(TypedDict):
    """The name of a custom tool, when its call begins, or more of its input."""

    name: NotRequired[str]
    input: str


class ChatCallDelta(TypedDict):
    """A call that begins or continues. Calls are counted from 0."""

    index: Count
    id: NotRequired[str]
    type: NotRequired[Literal["function", "custom"]]
    function: NotRequired[FunctionDelta]
    custom: NotRequired[CustomDelta]


class ChatDelta(TypedDict):
    """What a chunk adds to the message."""

    role: NotRequired[Literal["assistant"]]
    content: NotRequired[str]
    refusal: NotRequired[None]
    tool_calls: NotRequired[list[ChatCallDelta]]
    reasoning_content: NotRequired[str]
    reasoning: NotRequired[str]


class ChatChunkChoice(TypedDict):
    """The only choice."""

    index: Literal[0]
    delta: ChatDelta
    logprobs: ChatLogprobs | None
    finish_reason: FinishReason | None


class ChatCompletionChunk(Head):
    """A chunk of a stream. The one with the usage has no choice."""

    object: Literal["chat.completion.chunk"]
    choices: list[ChatChunkChoice]
    usage: NotRequired[ChatUsage | None]
