"""The Response object, with every field that OpenAI's SDK types and Open Responses requires: null where nothing is.

Effective values are echoed, not what was sent: a default shows as the value that was used.
"""

from __future__ import annotations

from typing import Any, Literal

from responses_api.protocol.requests.create import CreateResponse
from responses_api.protocol.tools.choice import choice_wire

ResponseStatus = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]

_UNUSED_FIELDS = (
    "access_programs",
    "conversation",
    "image",
    "input_transformations",
    "moderation",
    "prompt",
    "prompt_cache_diagnostics",
    "tool_usage",
)


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
) -> dict[str, Any]:
    """The object before anything was generated: usage null, output empty.

    `created_at` is in whole seconds. `model`, `temperature`, `top_p` and `store` are the values in force, after the
    server's defaults.
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
        **_effective_settings(request, temperature=temperature, top_p=top_p),
        **dict.fromkeys(_UNUSED_FIELDS),
    }


def _effective_settings(request: CreateResponse, *, temperature: float, top_p: float) -> dict[str, Any]:
    return {
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
    }


def deleted_response(response_id: str) -> dict[str, Any]:
    """The answer to DELETE."""
    return {"id": response_id, "object": "response", "deleted": True}


def usage(
    *,
    input_tokens: int,
    output_tokens: int,
    cached_tokens: int,
    cache_write_tokens: int,
    reasoning_tokens: int = 0,
) -> dict[str, Any]:
    """Token counts in wire form. All are counted, never assumed."""
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": cached_tokens, "cache_write_tokens": cache_write_tokens},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": reasoning_tokens},
        "total_tokens": input_tokens + output_tokens,
    }
