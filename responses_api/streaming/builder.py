"""Builds the events of a stream, and the object that is stored, from a generation: a pure state machine.

Every method returns events. `start` opens the stream with `response.created`, for a job `response.queued`, and
`response.in_progress`; `compaction` adds the item of a compacted history; `text`, `reasoning` and the three methods of
a call, in any order and any number of times, add items and their deltas; `finish` closes the open item and ends the
stream with exactly one terminal event. Guarantees:

- `sequence_number` counts from 0 without gaps.
- One item is open at a time: opening another completes it. A cut item ends as `incomplete`.
- Ids of items and calls are derived from the response's id: the same calls give the same events, so a replayed stream
  can be continued (provided that `seal` is deterministic).
- Deltas concatenate to the text of the item's done event; an empty delta gives no event.
- An event never changes later. A delta needs no copy of the response.
- `snapshot` is the object as it would be stored if the stream stopped now; after `finish` it is the final object, the
  one in the terminal event (the `error` of a cancelled job has none).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from responses_api.ids import Prefix
from responses_api.protocol.objects import OutputItem, Response, ResponseError, StreamEvent, Usage
from responses_api.protocol.objects.events import ResponseEvent, ResponseEventType
from responses_api.protocol.objects.items import CompactionObject, Logprob, Phase
from responses_api.streaming.events import (
    TERMINAL,
    IncompleteReason,
    ItemEnd,
    OpenItem,
    Outcome,
    cancellation_event,
    failure_event,
)
from responses_api.streaming.items.item_events import ItemEvents
from responses_api.streaming.items.message import MessageItem
from responses_api.streaming.items.reasoning import ReasoningItem
from responses_api.streaming.items.tool_call import CustomToolCallItem, FunctionCallItem, ToolCallItem
from responses_api.streaming.json_copy import json_copy

ANSWERS = ("message", "function_call", "custom_tool_call")
"""The types of items that are an answer, complete or cut off."""


class ResponseBuilder:
    """Builds the stream of one response.

    `base` is the Response object before anything was generated. With `queued`, the stream is a job's and begins in the
    queue. `answers` is false if there is only a compaction and no answer. `seal` makes the `encrypted_content` of a
    reasoning text, if the caller has asked for it. `output` has items that were published before.
    """

    def __init__(
        self,
        base: Response,
        *,
        queued: bool = False,
        answers: bool = True,
        seal: Callable[[str], str] | None = None,
        output: Sequence[OutputItem] = (),
    ) -> None:
        copy: Response = json_copy(base)
        self._response: Response = {**copy, "status": "queued" if queued else "in_progress", "output": []}
        self._queued = queued
        self._answers = answers
        self._seal = seal
        self._next_number = 0
        self._output: list[OutputItem] = json_copy(list(output))
        self._open_item: OpenItem | None = None
        self._early_logprobs: list[Logprob] = []
        self._ended = False
        self._before_end: tuple[int, Response, OpenItem | None] = (0, self._response, None)

    def start(self) -> list[StreamEvent]:
        """The events up to `response.in_progress`."""
        return [*self.wait(), *self.begin()]

    def wait(self) -> list[StreamEvent]:
        """The events before `response.in_progress`: a job may end in the queue."""
        if self._next_number:
            raise RuntimeError("The stream has started already.")
        created = self._lifecycle("response.created")
        return [created, self._lifecycle("response.queued")] if self._queued else [created]

    def begin(self) -> list[StreamEvent]:
        """`response.in_progress`, after `wait`."""
        self._response["status"] = "in_progress"
        return [self._lifecycle("response.in_progress")]

    def compaction(self, encrypted_content: str, *, tokens: tuple[int, int] | None = None) -> list[StreamEvent]:
        """The item of a compacted history. With `tokens`, before and after, two events of our own announce it."""
        self._check_running()
        events = self._close_item(cut=False) + (self._announcement(*tokens) if tokens is not None else [])
        item_events = self._item_events("cmp_")
        item: CompactionObject = {
            "id": item_events.item_id,
            "type": "compaction",
            "encrypted_content": encrypted_content,
        }
        self._output.append({**item})
        return [
            *events,
            item_events.added({**item, "encrypted_content": ""}),
            {"type": "response.compaction.compacting", **item_events.place()},
            item_events.done(item.copy()),
        ]

    def _announcement(self, before: int, after: int) -> list[StreamEvent]:
        return [
            {
                "type": "mlx.compaction.started",
                "sequence_number": self._number(),
                "response_id": self._response["id"],
                "input_tokens": before,
            },
            {
                "type": "mlx.compaction.completed",
                "sequence_number": self._number(),
                "response_id": self._response["id"],
                "input_tokens_before": before,
                "input_tokens_after": after,
            },
        ]

    def text(self, delta: str, *, phase: Phase | None = None, logprobs: Sequence[Logprob] = ()) -> list[StreamEvent]:
        """Text of a message. After another item, or with another phase, a new message opens.

        `logprobs` of empty text are added to the text that follows; if something else follows, they are dropped.
        """
        self._check_running()
        entries = [*self._early_logprobs, *logprobs]
        if not delta:
            self._early_logprobs = entries
            return []
        self._early_logprobs = []
        if isinstance(self._open_item, MessageItem) and self._open_item.phase == phase:
            return [self._open_item.text(delta, entries)]
        events = self._close_item(cut=False)
        message = MessageItem(self._item_events("msg_"), phase=phase)
        return [*events, *self._open(message), message.text(delta, entries)]

    def reasoning(self, delta: str) -> list[StreamEvent]:
        """Text of the model's reasoning. After another item, a new reasoning item opens."""
        self._check_running()
        if not delta:
            return []
        self._early_logprobs = []
        if isinstance(self._open_item, ReasoningItem):
            return [self._open_item.text(delta)]
        events = self._close_item(cut=False)
        item = ReasoningItem(self._item_events("rs_"), seal=self._seal)
        return [*events, *self._open(item), item.text(delta)]

    def open_call(self, name: str, *, namespace: str | None = None, custom: bool = False) -> list[StreamEvent]:
        """Begin the call of a function, or of a custom tool."""
        self._check_running()
        events = self._close_item(cut=False)
        kind = CustomToolCallItem if custom else FunctionCallItem
        return events + self._open(kind(self._item_events(kind.prefix), name=name, namespace=namespace))

    def call_text(self, delta: str) -> list[StreamEvent]:
        """Text of the open call's arguments or input."""
        call = self._open_call()
        return [call.text(delta)] if delta else []

    def close_call(self, *, complete: bool = True) -> list[StreamEvent]:
        """End the open call. One that isn't complete was cut, and nobody can run it."""
        self._open_call()
        return self._close_item(cut=not complete)

    def finish(
        self,
        outcome: Outcome,
        *,
        usage: Usage | None = None,
        completed_at: int | None = None,
        reason: IncompleteReason = "max_output_tokens",
        error: ResponseError | None = None,
    ) -> list[StreamEvent]:
        """Close the open item and end the stream.

        `completed_at` (whole seconds) is used for a completed response, `reason` for an incomplete one; `error` is
        required for a failed one. A completed answer with neither a message nor a call gets a message with empty text.
        A call that is still open was cut, whatever the outcome.
        """
        self._check_running()
        if outcome == "failed" and error is None:
            raise ValueError("A failed response needs an error.")
        self._before_end = (self._next_number, self._response.copy(), self._open_item)
        events = self._close_item(cut=outcome != "completed" or isinstance(self._open_item, ToolCallItem))
        if outcome == "completed" and self._answers and not any(item["type"] in ANSWERS for item in self._output):
            events += self._open(MessageItem(self._item_events("msg_"))) + self._close_item(cut=False)
        self._response |= {"status": outcome, "usage": json_copy(usage)}
        self._ended = True
        return events + self._ending(outcome, completed_at=completed_at, reason=reason, error=error)

    def fail_instead(self, error: ResponseError, *, usage: Usage | None = None) -> list[StreamEvent]:
        """Replace the events of `finish`, which couldn't be stored and are not published.

        An item that was open ends as cut. The output is empty, since none of it is stored.
        """
        if not self._ended:
            raise RuntimeError("The stream has not ended.")
        self._next_number, response, item = self._before_end
        events = item.close("incomplete") if item is not None else []
        self._output = []
        self._response = {**response, "status": "failed", "usage": json_copy(usage)}
        return events + self._ending("failed", completed_at=None, reason="max_output_tokens", error=error)

    def snapshot(self) -> Response:
        """The object as it would be stored if the stream stopped now: a copy."""
        output = json_copy(self._output)
        if self._open_item is not None:
            output.append(json_copy(self._open_item.as_item("incomplete")))
        response: Response = json_copy(self._response)
        return {**response, "output": output}

    def _ending(
        self, outcome: Outcome, *, completed_at: int | None, reason: IncompleteReason, error: ResponseError | None
    ) -> list[StreamEvent]:
        if outcome == "cancelled":
            return [cancellation_event(self._number())]
        if error is not None and outcome == "failed":
            self._response["error"] = error
            return [failure_event(error, self._number()), self._lifecycle("response.failed")]
        if outcome == "incomplete":
            self._response["incomplete_details"] = {"reason": reason}
        else:
            self._response["completed_at"] = completed_at
        return [self._lifecycle(TERMINAL[outcome])]

    def _open(self, item: OpenItem) -> list[StreamEvent]:
        self._open_item = item
        return item.open()

    def _open_call(self) -> ToolCallItem:
        self._check_running()
        if not isinstance(self._open_item, ToolCallItem):
            raise RuntimeError("No call is open.")
        return self._open_item

    def _close_item(self, *, cut: bool) -> list[StreamEvent]:
        item, self._open_item = self._open_item, None
        self._early_logprobs = []
        if item is None:
            return []
        end: ItemEnd = "incomplete" if cut else "completed"
        events = item.close(end)
        done = events[-1]
        assert done["type"] == "response.output_item.done"
        self._output.append(json_copy(done["item"]))
        return events

    def _item_events(self, prefix: Prefix) -> ItemEvents:
        """The events of the next item; the open one has been closed."""
        response_id, index = self._response["id"], len(self._output)
        return ItemEvents(self._number, prefix=prefix, response_id=response_id, output_index=index)

    def _check_running(self) -> None:
        if not self._next_number or self._ended:
            raise RuntimeError("The stream has not started, or has ended.")

    def _lifecycle(self, type: ResponseEventType) -> ResponseEvent:
        return {"type": type, "sequence_number": self._number(), "response": self.snapshot()}

    def _number(self) -> int:
        number, self._next_number = self._next_number, self._next_number + 1
        return number
