"""The events of a response's stream as the chunks of a chat's. Pure.

The first chunk has the role; each further one has one delta, and the last one the reason why the answer ended. An error
takes its place: clients recognise it by the key `error`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from responses_api.chat.completion import BETWEEN, Form, chat_usage, finish_reason, head, logprobs
from responses_api.chat.objects import (
    ChatCallDelta,
    ChatCompletionChunk,
    ChatDelta,
    ChatUsage,
    FinishReason,
    Head,
)
from responses_api.errors import Error
from responses_api.protocol.objects import OutputItem, Response, StreamEvent
from responses_api.protocol.objects.events import ErrorEvent
from responses_api.protocol.objects.items import Logprob

READ: Final = frozenset(
    {
        "response.created",
        "response.output_item.added",
        "response.output_text.delta",
        "response.reasoning_text.delta",
        "response.function_call_arguments.delta",
        "response.custom_tool_call_input.delta",
        "response.completed",
        "response.incomplete",
        "error",
    }
)
"""The types of events that give chunks; the others need not be decoded."""

ERROR_TYPES: Final = {"rate_limit_exceeded": "rate_limit_error", "invalid_prompt": "invalid_request_error"}


class ChunkStream:
    """The chunks of one stream. ``reword`` translates the message of an error."""

    def __init__(self, form: Form, *, reword: Callable[[str], str] = str) -> None:
        self._form = form
        self._reword = reword
        self._head: Head | None = None
        self._calls = 0
        self._begun: set[str] = set()
        """The fields that have text."""
        self._item_begins = False
        """Whether the open item has no text yet."""

    def feed(self, event: StreamEvent) -> list[ChatCompletionChunk | Error]:
        """The chunks for the next event."""
        match event["type"]:
            case "response.created":
                self._head = head(event["response"], self._form)
                return [self._chunk({"role": "assistant", "content": "", "refusal": None})]
            case "response.output_item.added":
                return self._opened(event["item"])
            case "response.output_text.delta":
                delta: ChatDelta = {"content": self._separated("content", event["delta"])}
                return [self._chunk(delta, entries=event["logprobs"])]
            case "response.reasoning_text.delta":
                if not self._form.reasoning_fields:
                    return []
                text = self._separated("reasoning", event["delta"])
                return [self._chunk(cast("ChatDelta", dict.fromkeys(self._form.reasoning_fields, text)))]
            case "response.function_call_arguments.delta":
                return [self._call({"index": self._calls - 1, "function": {"arguments": event["delta"]}})]
            case "response.custom_tool_call_input.delta":
                return [self._call({"index": self._calls - 1, "custom": {"input": event["delta"]}})]
            case "response.completed" | "response.incomplete":
                return self._ended(event["response"])
            case "error":
                return [self._error(event)]
        return []

    def _opened(self, item: OutputItem) -> list[ChatCompletionChunk | Error]:
        self._item_begins = True
        index = self._calls
        match item["type"]:
            case "function_call":
                call: ChatCallDelta = {
                    "index": index,
                    "id": item["call_id"],
                    "type": "function",
                    "function": {"name": item["name"], "arguments": ""},
                }
            case "custom_tool_call":
                call = {
                    "index": index,
                    "id": item["call_id"],
                    "type": "custom",
                    "custom": {"name": item["name"], "input": ""},
                }
            case _:
                return []
        self._calls += 1
        return [self._call(call)]

    def _separated(self, field: str, delta: str) -> str:
        """The delta, after a blank line if it begins an item and the field has text of an earlier one."""
        separator = BETWEEN if self._item_begins and field in self._begun else ""
        self._begun.add(field)
        self._item_begins = False
        return separator + delta

    def _call(self, call: ChatCallDelta) -> ChatCompletionChunk:
        return self._chunk({"tool_calls": [call]})

    def _ended(self, response: Response) -> list[ChatCompletionChunk | Error]:
        chunks: list[ChatCompletionChunk | Error] = [self._chunk({}, finish=finish_reason(response))]
        if self._form.has_usage:
            chunks.append(self._without_choice(chat_usage(response["usage"])))
        return chunks

    def _chunk(
        self, delta: ChatDelta, *, entries: list[Logprob] | None = None, finish: FinishReason | None = None
    ) -> ChatCompletionChunk:
        chunk = self._without_choice(None)
        chunk["choices"] = [{"index": 0, "delta": delta, "logprobs": logprobs(entries or ()), "finish_reason": finish}]
        return chunk

    def _without_choice(self, usage: ChatUsage | None) -> ChatCompletionChunk:
        assert self._head is not None
        chunk: ChatCompletionChunk = {
            **self._head,
            "object": "chat.completion.chunk",
            "choices": [],
            "usage": usage,
        }
        if not self._form.has_usage:
            del chunk["usage"]
        return chunk

    def _error(self, event: ErrorEvent) -> Error:
        code = event["code"] or "server_error"
        return {
            "error": {
                "message": self._reword(event["message"]),
                "type": ERROR_TYPES.get(code, "server_error"),
                "param": None,
                "code": code,
            }
        }
