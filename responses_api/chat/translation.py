"""A chat's request as a Responses request. Pure.

What both have under the same name is passed on as it was sent; the rest is renamed, and flattened where a chat nests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from responses_api.chat import response_format
from responses_api.chat.items import Items
from responses_api.chat.places import Place, Places
from responses_api.chat.request import CreateChatCompletion, parse_chat
from responses_api.errors import InvalidValue
from responses_api.protocol.requests.parameters import LOGPROBS

Json = dict[str, Any]

PASSED_ON: Final = (
    "model", "temperature", "top_p", "parallel_tool_calls", "metadata", "top_logprobs",
    "user", "safety_identifier", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "service_tier",
    "stop", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "top_k", "min_p", "repetition_penalty",
    "chat_template_kwargs",
)  # fmt: skip
"""Parameters that a Responses request has, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """A Responses request, and the places that its pieces came from."""

    request: CreateChatCompletion
    payload: Json
    places: Places


def translate(payload: object) -> Translation:
    """The Responses request for the body of a chat's request. Raises an ApiError (400) that names one error of it."""
    request = parse_chat(payload)
    assert isinstance(payload, dict)
    body: Json = {name: payload[name] for name in PASSED_ON if payload.get(name) is not None}
    body |= {"store": False, "stream": request.stream}
    items = _items(request)
    body["input"] = items.items
    body |= _renamed(request)
    places = Places(_parameters(request), {f"input[{number}]": place for number, place in enumerate(items.places)})
    return Translation(request=request, payload=body, places=places)


def _items(request: CreateChatCompletion) -> Items:
    items = Items(request.messages)
    if not items.items:
        raise InvalidValue("`messages` have no content; send at least one message with text.", param="messages")
    return items


def _renamed(request: CreateChatCompletion) -> Json:
    body: Json = {}
    limit = request.max_completion_tokens or request.max_tokens
    if limit is not None:
        body["max_output_tokens"] = limit
    if request.logprobs:
        body["include"] = [LOGPROBS]
    if request.reasoning_effort is not None:
        body["reasoning"] = {"effort": request.reasoning_effort}
    if request.enable_thinking is not None:
        body["chat_template_kwargs"] = {
            **(request.chat_template_kwargs or {}),
            "enable_thinking": request.enable_thinking,
        }
    text: Json = {} if request.verbosity is None else {"verbosity": request.verbosity}
    if request.response_format is not None:
        text["format"] = request.response_format.wire()
    if text:
        body["text"] = text
    if request.tools:
        body["tools"] = [tool.wire() for tool in request.tools]
    choice = request.tool_choice
    if choice is not None:
        body["tool_choice"] = choice if isinstance(choice, str) else choice.wire()
    return body


def _parameters(request: CreateChatCompletion) -> Mapping[str, Place]:
    choice = request.tool_choice
    places = {
        "input": Place("messages"),
        "max_output_tokens": Place(request.token_limit_name),
        "include": Place("logprobs"),
        "reasoning.effort": Place("reasoning_effort"),
        "text.format": Place("response_format", response_format.FIELDS),
        "text.verbosity": Place("verbosity"),
    }
    if request.enable_thinking is not None:
        places["chat_template_kwargs.enable_thinking"] = Place("enable_thinking")
    if choice is not None and not isinstance(choice, str):
        places["tool_choice"] = Place("tool_choice", choice.places())
    for number, tool in enumerate(request.tools):
        places[f"tools[{number}]"] = Place(f"tools[{number}]", tool.fields)
    return places
