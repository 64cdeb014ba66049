"""The end of a stream whose worker is gone, made by the reader from what it has seen. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from responses_api.protocol.objects import Response, ResponseError
from responses_api.streaming.builder import CANCELLED, ResponseBuilder
from responses_api.streaming.events import EncodedEvent, Event

DELTAS = (
    "response.output_text.delta",
    "response.reasoning_text.delta",
    "response.function_call_arguments.delta",
    "response.custom_tool_call_input.delta",
)


def failure_events(created: Response, *, sequence_number: int, message: str) -> list[Event]:
    """The `error` event and `response.failed`, for the response object of `response.created`.

    `sequence_number` is the first one that the reader has not seen. The output stays empty, as nothing of it is stored.
    """
    fault: ResponseError = {"code": "server_error", "message": message}
    failed: Response = {**created, "status": "failed", "error": fault}
    return [
        {"type": "error", "sequence_number": sequence_number, **fault, "param": None},
        {"type": "response.failed", "sequence_number": sequence_number + 1, "response": failed},
    ]


def terminal_events(response: Response, *, sequence_number: int) -> list[Event]:
    """The last events of the stream of a response that has ended, from the object alone."""
    if response["status"] == "failed":
        error = response["error"]
        assert error is not None
        return [
            {"type": "error", "sequence_number": sequence_number, **error, "param": None},
            {"type": "response.failed", "sequence_number": sequence_number + 1, "response": dict(response)},
        ]
    if response["status"] == "cancelled":
        return [{"type": "error", "sequence_number": sequence_number, **CANCELLED, "param": None}]
    return [{"type": f"response.{response['status']}", "sequence_number": sequence_number, "response": dict(response)}]


class SeenStream:
    """As much of a stream as is needed to end it: the items that are done, and the text of the one that is open."""

    def __init__(self) -> None:
        self._count = 0
        self._created: Response | None = None
        self._output: list[dict[str, Any]] = []
        self._open: dict[str, Any] | None = None
        self._deltas: list[str] = []
        self._with_logprobs: list[str] = []
        """The events, as text, which takes a tenth of the memory."""

    @property
    def has_begun(self) -> bool:
        """Whether there is a stream that can be ended."""
        return self._created is not None

    def see(self, events: Sequence[EncodedEvent]) -> None:
        """Take note of the next events."""
        self._count += len(events)
        for kind, text in events:
            if kind in DELTAS:
                event = orjson.loads(text)
                self._deltas.append(event["delta"])
                if event.get("logprobs"):
                    self._with_logprobs.append(text)
            elif kind == "response.created":
                self._created = orjson.loads(text)["response"]
            elif kind == "response.output_item.added":
                self._open, self._deltas, self._with_logprobs = orjson.loads(text)["item"], [], []
            elif kind == "response.output_item.done":
                self._output.append(orjson.loads(text)["item"])
                self._open = None

    def failure(self, message: str) -> list[Event]:
        """The events that close what is open, cut as it is, and end the stream."""
        assert self._created is not None
        builder = ResponseBuilder(self._created, output=self._output)
        builder.start()
        self._write_open_item(builder)
        fault: ResponseError = {"code": "server_error", "message": message}
        events = builder.finish("failed", error=fault)
        return [{**event, "sequence_number": number} for number, event in enumerate(events, start=self._count)]

    def _write_open_item(self, builder: ResponseBuilder) -> None:
        if self._open is None:
            return
        item, text = self._open, "".join(self._deltas)
        match item["type"]:
            case "message":
                logprobs = [entry for event in self._with_logprobs for entry in orjson.loads(event)["logprobs"]]
                builder.text(text, phase=item.get("phase"), logprobs=logprobs)
            case "reasoning":
                builder.reasoning(text)
            case "function_call" | "custom_tool_call" as type:
                builder.open_call(item["name"], namespace=item.get("namespace"), custom=type == "custom_tool_call")
                builder.call_text(text)
