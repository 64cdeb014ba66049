"""The end of a stream whose worker is lost, made by its reader from the received events. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from responses_api.protocol.objects import OutputItem, Response, ResponseError, StreamEvent
from responses_api.protocol.objects.events import Delta
from responses_api.streaming.builder import ResponseBuilder
from responses_api.streaming.events import TERMINAL, EncodedEvent, cancellation_event, failure_event, renumbered
from responses_api.streaming.replay import replay

DELTAS = (
    "response.output_text.delta",
    "response.reasoning_text.delta",
    "response.function_call_arguments.delta",
    "response.custom_tool_call_input.delta",
)


JOINED_BYTES = 1 << 18
"""Bytes of deltas that are joined at once, which takes a few milliseconds."""


def joined(deltas: Sequence[Delta]) -> Delta:
    """One delta with the text of these deltas of one item."""
    whole = deltas[0].copy()
    whole["delta"] = "".join(event["delta"] for event in deltas)
    if whole["type"] == "response.output_text.delta":
        of_text = (event for event in deltas if event["type"] == "response.output_text.delta")
        whole["logprobs"] = [entry for event in of_text for entry in event["logprobs"]]
    return whole


def failure_events(created: Response, *, sequence_number: int, message: str) -> list[StreamEvent]:
    """The `error` event and `response.failed`, for the response object of `response.created`.

    `sequence_number` is the first one that the reader has not received. The output is empty, since none of it is
    stored.
    """
    error: ResponseError = {"code": "server_error", "message": message}
    failed: Response = {**created, "status": "failed", "error": error}
    return [
        failure_event(error, sequence_number),
        {"type": "response.failed", "sequence_number": sequence_number + 1, "response": failed},
    ]


def terminal_events(response: Response, *, sequence_number: int) -> list[StreamEvent]:
    """The last events of the stream of a response that has ended, from the object alone."""
    if response["status"] == "failed":
        error = response["error"]
        assert error is not None
        return [
            failure_event(error, sequence_number),
            {"type": "response.failed", "sequence_number": sequence_number + 1, "response": response.copy()},
        ]
    if response["status"] == "cancelled":
        return [cancellation_event(sequence_number)]
    end = TERMINAL[response["status"]]
    return [{"type": end, "sequence_number": sequence_number, "response": response.copy()}]


class SeenStream:
    """The part of a stream that is needed to end it: the finished items, and the events of the open one.

    Few streams need it, so events are stored as text and decoded at the end only. The deltas of a long item are joined
    now and then: as events they take ten times the memory of their text.
    """

    def __init__(self) -> None:
        self._count = 0
        self._created = ""
        self._done: list[str] = []
        self._open: list[str] = []
        """The events of the open item: its first events, joined deltas, and the latest deltas as received."""
        self._latest = 0
        """How many of these are deltas as received."""
        self._latest_size = 0

    @property
    def has_begun(self) -> bool:
        """Whether the stream has begun, so that it can be ended."""
        return bool(self._created)

    def see(self, events: Sequence[EncodedEvent]) -> None:
        """Add the next events."""
        self._count += len(events)
        for kind, text in events:
            if kind in DELTAS:
                self._add_delta(text)
            elif kind == "response.created":
                self._created = text
            elif kind == "response.output_item.added":
                self._begin(text)
            elif kind == "response.output_item.done":
                self._done.append(text)
                self._begin()

    def _begin(self, *opening: str) -> None:
        self._open, self._latest, self._latest_size = [*opening], 0, 0

    def _add_delta(self, text: str) -> None:
        self._open.append(text)
        self._latest, self._latest_size = self._latest + 1, self._latest_size + len(text)
        if self._latest_size > JOINED_BYTES:
            latest: list[Delta] = [orjson.loads(delta) for delta in self._open[-self._latest :]]
            self._open[-self._latest :] = [orjson.dumps(joined(latest)).decode()]
            self._latest, self._latest_size = 0, 0

    def failure(self, message: str) -> list[StreamEvent]:
        """The events that close the open item as incomplete and end the stream."""
        output: list[OutputItem] = [orjson.loads(text)["item"] for text in self._done]
        builder = ResponseBuilder(orjson.loads(self._created)["response"], output=output)
        builder.start()
        replay(builder, map(orjson.loads, self._open))
        error: ResponseError = {"code": "server_error", "message": message}
        return renumbered(builder.finish("failed", error=error), self._count)
