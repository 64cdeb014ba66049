"""The end of a stream whose worker is gone, made by its reader from the events that it has received. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from responses_api.protocol.objects import Response, ResponseError
from responses_api.streaming.builder import CANCELLED, ResponseBuilder
from responses_api.streaming.events import EncodedEvent, Event
from responses_api.streaming.replay import replay

DELTAS = (
    "response.output_text.delta",
    "response.reasoning_text.delta",
    "response.function_call_arguments.delta",
    "response.custom_tool_call_input.delta",
)


def failure_events(created: Response, *, sequence_number: int, message: str) -> list[Event]:
    """The `error` event and `response.failed`, for the response object of `response.created`.

    `sequence_number` is the first one that the reader has not received. The output is empty, since none of it is
    stored.
    """
    error: ResponseError = {"code": "server_error", "message": message}
    failed: Response = {**created, "status": "failed", "error": error}
    return [
        {"type": "error", "sequence_number": sequence_number, **error, "param": None},
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
    """The part of a stream that is needed to end it: the finished items, and the events of the open one.

    Few streams need it, so events are stored as text and decoded at the end only.
    """

    def __init__(self) -> None:
        self._count = 0
        self._created = ""
        self._done: list[str] = []
        self._open: list[str] = []

    @property
    def has_begun(self) -> bool:
        """Whether the stream has begun, so that it can be ended."""
        return bool(self._created)

    def see(self, events: Sequence[EncodedEvent]) -> None:
        """Add the next events."""
        self._count += len(events)
        for kind, text in events:
            if kind in DELTAS:
                self._open.append(text)
            elif kind == "response.created":
                self._created = text
            elif kind == "response.output_item.added":
                self._open = [text]
            elif kind == "response.output_item.done":
                self._done.append(text)
                self._open = []

    def failure(self, message: str) -> list[Event]:
        """The events that close the open item, as a cut one, and end the stream."""
        output = [orjson.loads(text)["item"] for text in self._done]
        builder = ResponseBuilder(orjson.loads(self._created)["response"], output=output)
        builder.start()
        replay(builder, map(orjson.loads, self._open))
        error: ResponseError = {"code": "server_error", "message": message}
        events = builder.finish("failed", error=error)
        return [{**event, "sequence_number": number} for number, event in enumerate(events, start=self._count)]
