"""The Response object, with every field in the types of OpenAI's SDK or required by Open Responses.

It has the effective values, not those of the request: a default appears as the value that was used.
"""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

from responses_api.protocol.objects.fields import AnyObject, Count, Metadata, Timestamp
from responses_api.protocol.objects.items import OutputItem
from responses_api.protocol.objects.usage import Usage
from responses_api.protocol.requests.create import CreateResponse
from responses_api.protocol.requests.parameters import Truncation
from responses_api.protocol.tools.choice import choice_wire

ErrorCode = Literal["server_error", "rate_limit_exceeded", "invalid_prompt"]
"""The codes of OpenAI's API that this server uses."""
ResponseStatus = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]


class ResponseError(TypedDict):
    """Why a response failed."""

    code: ErrorCode
    message: str


class IncompleteDetails(TypedDict):
    """Why a response is incomplete."""

    reason: str


class ConversationReference(TypedDict):
    """The conversation to which a response belongs."""

    id: str


class Response(TypedDict):
    """A response. All fields are present; those without a value are null."""

    id: str
    object: Literal["response"]
    created_at: Timestamp
    completed_at: Timestamp | None
    status: ResponseStatus
    background: bool
    error: ResponseError | None
    incomplete_details: IncompleteDetails | None
    instructions: str | None
    model: str
    output: list[OutputItem]
    previous_response_id: str | None
    usage: Usage | None
    metadata: Metadata
    store: bool
    frequency_penalty: float
    max_output_tokens: Count | None
    max_tool_calls: Count | None
    parallel_tool_calls: bool
    presence_penalty: float
    prompt_cache_key: str | None
    prompt_cache_options: AnyObject | None
    prompt_cache_retention: str | None
    reasoning: AnyObject | None
    safety_identifier: str | None
    service_tier: str
    temperature: float
    text: AnyObject
    tool_choice: str | AnyObject
    tools: list[AnyObject]
    top_logprobs: Count
    top_p: float
    truncation: Truncation
    user: str | None
    access_programs: list[Any] | None
    conversation: ConversationReference | None
    image: AnyObject | None
    input_transformations: Any
    moderation: AnyObject | None
    prompt: AnyObject | None
    prompt_cache_diagnostics: AnyObject | None
    tool_usage: AnyObject | None


class DeletedResponse(TypedDict):
    """A deleted response."""

    id: str
    object: Literal["response"]
    deleted: Literal[True]


def initial_response(
    request: CreateResponse,
    *,
    id: str,
    created_at: int,
    model: str,
    temperature: float,
    top_p: float,
    store: bool,
    status: Literal["queued", "in_progress"] = "in_progress",
) -> Response:
    """The object before anything was generated: usage null, output empty.

    `created_at` is in whole seconds. `model`, `temperature`, `top_p` and `store` are the effective values, with the
    server's defaults applied.
    """
    return {
        "id": id,
        "object": "response",
        "created_at": created_at,
        "completed_at": None,
        "status": status,
        "background": request.background,
        "error": None,
        "incomplete_details": None,
        "instructions": request.instructions,
        "model": model,
        "output": [],
        "previous_response_id": request.previous_response_id,
        "usage": None,
        "metadata": dict(request.metadata),
        "store": store,
        "frequency_penalty": request.frequency_penalty,
        "max_output_tokens": request.max_output_tokens,
        "max_tool_calls": request.max_tool_calls,
        "parallel_tool_calls": request.parallel_tool_calls,
        "presence_penalty": request.presence_penalty,
        "prompt_cache_key": request.prompt_cache_key,
        "prompt_cache_options": request.prompt_cache_options.wire() if request.prompt_cache_options else None,
        "prompt_cache_retention": request.prompt_cache_retention,
        "reasoning": request.reasoning.wire(),
        "safety_identifier": request.safety_identifier,
        "service_tier": request.service_tier,
        "temperature": temperature,
        "text": {"format": request.text.format.wire(), "verbosity": request.text.verbosity},
        "tool_choice": choice_wire(request.tool_choice),
        "tools": [tool.wire() for tool in request.tools],
        "top_logprobs": request.top_logprobs,
        "top_p": top_p,
        "truncation": request.truncation,
        "user": request.user,
        # Unused by this server, and required by OpenAI's types.
        "access_programs": None,
        "conversation": None,
        "image": None,
        "input_transformations": None,
        "moderation": None,
        "prompt": None,
        "prompt_cache_diagnostics": None,
        "tool_usage": None,
    }


def deleted_response(response_id: str) -> DeletedResponse:
    """The answer to the deletion of a response."""
    return {"id": response_id, "object": "response", "deleted": True}
