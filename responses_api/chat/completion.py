"""A response as a chat completion. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, cast

from responses_api.chat.objects import (
    ChatAnswer,
    ChatCompletion,
    ChatCustomCall,
    ChatFunctionCall,
    ChatLogprobs,
    ChatUsage,
    FinishReason,
    Head,
)
from responses_api.protocol.objects import OutputItem, Response, Usage
from responses_api.protocol.objects.items import Logprob

BETWEEN: Final = "\n\n"
"""Between the texts of two items of the same kind, which a chat has in one field."""
REASONING_FIELDS: Final = {
    "reasoning_content": ("reasoning_content",),
    "reasoning": ("reasoning",),
    "both": ("reasoning_content", "reasoning"),
    "none": (),
}
"""The fields that have the reasoning, by the setting."""
FINGERPRINT_DIGITS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What the request and the server's settings say about the form of the answer."""

    reasoning_fields: Sequence[str]
    version: str
    """The server's."""
    has_metadata: bool = False
    has_usage: bool = False
    """Whether a stream ends with the usage."""


def chat_completion(response: Response, form: Form) -> ChatCompletion:
    """The chat completion for a completed or incomplete response."""
    answer = _answer(response["output"], form)
    completion: ChatCompletion = {
        **head(response, form),
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": answer,
                "logprobs": logprobs(
                    entry
                    for item in response["output"]
                    if item["type"] == "message"
                    for part in item["content"]
                    if part["type"] == "output_text"
                    for entry in part["logprobs"]
                ),
                "finish_reason": finish_reason(response),
            }
        ],
        "usage": chat_usage(response["usage"]),
        "metadata": response["metadata"],
    }
    if not form.has_metadata:
        del completion["metadata"]
    return completion


def head(response: Response, form: Form) -> Head:
    """The fields that an answer and each of its chunks have."""
    source = f"{response['model']}\n{form.version}"
    return {
        "id": "chatcmpl-" + response["id"].partition("_")[2],
        "created": response["created_at"],
        "model": response["model"],
        "service_tier": "default",
        "system_fingerprint": "fp_" + hashlib.sha256(source.encode()).hexdigest()[:FINGERPRINT_DIGITS],
    }


def finish_reason(response: Response) -> FinishReason:
    """Why the answer ended."""
    details = response["incomplete_details"]
    if details is not None:
        return "content_filter" if details["reason"] == "content_filter" else "length"
    calls = any(item["type"] in ("function_call", "custom_tool_call") for item in response["output"])
    return "tool_calls" if calls else "stop"


def logprobs(entries: Iterable[Logprob]) -> ChatLogprobs | None:
    """The log-probabilities of tokens; ``None`` without any."""
    content = list(entries)
    return {"content": content, "refusal": None} if content else None


def chat_usage(usage: Usage | None) -> ChatUsage | None:
    """The counts under the names of a chat."""
    if usage is None:
        return None
    read = usage["input_tokens_details"]
    return {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "total_tokens": usage["total_tokens"],
        "prompt_tokens_details": {
            "cached_tokens": read["cached_tokens"],
            "cache_write_tokens": read["cache_write_tokens"],
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage["output_tokens_details"]["reasoning_tokens"],
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _answer(output: Iterable[OutputItem], form: Form) -> ChatAnswer:
    texts: list[str] = []
    refusals: list[str] = []
    thoughts: list[str] = []
    calls: list[ChatFunctionCall | ChatCustomCall] = []
    for item in output:
        match item["type"]:
            case "message":
                texts.append("".join(part["text"] for part in item["content"] if part["type"] == "output_text"))
                refusals += [part["refusal"] for part in item["content"] if part["type"] == "refusal"]
            case "reasoning":
                thoughts.append("".join(part["text"] for part in item.get("content", ())))
            case "function_call":
                calls.append(
                    {
                        "id": item["call_id"],
                        "type": "function",
                        "function": {"name": item["name"], "arguments": item["arguments"]},
                    }
                )
            case "custom_tool_call":
                calls.append(
                    {
                        "id": item["call_id"],
                        "type": "custom",
                        "custom": {"name": item["name"], "input": item["input"]},
                    }
                )
    answer: ChatAnswer = {
        "role": "assistant",
        "content": BETWEEN.join(filter(None, texts)) if texts else None,
        "refusal": BETWEEN.join(refusals) if refusals else None,
        "annotations": [],
    }
    if calls:
        answer["tool_calls"] = calls
    reasoning = BETWEEN.join(filter(None, thoughts))
    if reasoning:
        answer |= cast("ChatAnswer", dict.fromkeys(form.reasoning_fields, reasoning))
    return answer
