"""Restores a stream builder from the events of its stream, so that the stream can be ended. Pure.

A process that ends a stream whose worker is lost has neither its model nor its tokens, only the published events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from responses_api.protocol.objects import Response
from responses_api.protocol.objects.items import Phase
from responses_api.streaming.builder import ResponseBuilder
from responses_api.streaming.events import Event

CALLS = ("function_call", "custom_tool_call")


class NotReplayable(Exception):
    """This builder doesn't make a stream that begins with these events."""


def replayed_builder(
    base: Response, events: Sequence[Event], *, seal: Callable[[str], str] | None = None
) -> ResponseBuilder:
    """The builder after it has repeated these events of a job's stream. Else raises :class:`NotReplayable`."""
    builder = ResponseBuilder(base, queued=True, seal=seal)
    repeated = builder.wait()
    if len(events) > len(repeated):
        repeated += builder.begin()
    repeated += replay(builder, events[len(repeated) :])
    if repeated[: len(events)] != list(events):
        raise NotReplayable
    return builder


def replay(builder: ResponseBuilder, events: Iterable[Event]) -> list[Event]:
    """Repeat the calls that made these events on a started builder; returns the events that it makes now."""
    repeated: list[Event] = []
    phase: Phase | None = None
    tokens: tuple[int, int] | None = None
    for event in events:
        match event:
            case {"type": "response.output_item.added", "item": {"type": "message"}}:
                phase = event["item"].get("phase")
            case {"type": "response.output_text.delta", "delta": delta}:
                repeated += builder.text(delta, phase=phase, logprobs=event["logprobs"])
            case {"type": "response.reasoning_text.delta", "delta": delta}:
                repeated += builder.reasoning(delta)
            case {"type": "response.output_item.added", "item": {"type": "function_call" | "custom_tool_call"}}:
                item = event["item"]
                is_custom = item["type"] == "custom_tool_call"
                repeated += builder.open_call(item["name"], namespace=item.get("namespace"), custom=is_custom)
            case {"type": "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta"}:
                repeated += builder.call_text(event["delta"])
            case {"type": "response.output_item.done", "item": {"type": type, "status": status}} if type in CALLS:
                repeated += builder.close_call(complete=status == "completed")
            case {"type": "mlx.compaction.completed"}:
                tokens = event["input_tokens_before"], event["input_tokens_after"]
            case {"type": "response.output_item.done", "item": {"type": "compaction"}}:
                repeated += builder.compaction(event["item"]["encrypted_content"], tokens=tokens)
    return repeated
