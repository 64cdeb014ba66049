"""Restores a stream builder from the events of its stream, so that the stream can be ended. Pure.

A process that ends a stream whose worker is lost has neither its model nor its tokens, only the published events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from responses_api.protocol.objects import OutputItem, Response, StreamEvent
from responses_api.protocol.objects.items import Phase
from responses_api.streaming.builder import ResponseBuilder


class NotReplayable(Exception):
    """This builder doesn't make a stream that begins with these events."""


def replayed_builder(
    base: Response, events: Sequence[StreamEvent], *, seal: Callable[[str], str] | None = None
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


def replay(builder: ResponseBuilder, events: Iterable[StreamEvent]) -> list[StreamEvent]:
    """Repeat the calls that made these events on a started builder; returns the events that it makes now."""
    repeated: list[StreamEvent] = []
    phase: Phase | None = None
    tokens: tuple[int, int] | None = None
    for event in events:
        match event["type"]:
            case "response.output_item.added":
                item = event["item"]
                phase = item.get("phase") if item["type"] == "message" else None
                repeated += _opened(builder, item)
            case "response.output_text.delta":
                repeated += builder.text(event["delta"], phase=phase, logprobs=event["logprobs"])
            case "response.reasoning_text.delta":
                repeated += builder.reasoning(event["delta"])
            case "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta":
                repeated += builder.call_text(event["delta"])
            case "response.output_item.done":
                repeated += _closed(builder, event["item"], tokens)
            case "mlx.compaction.completed":
                tokens = event["input_tokens_before"], event["input_tokens_after"]
    return repeated


def _opened(builder: ResponseBuilder, item: OutputItem) -> list[StreamEvent]:
    """Open a call again. Messages and reasoning open with their first delta, and a compaction is a single call."""
    match item["type"]:
        case "function_call" | "custom_tool_call":
            custom = item["type"] == "custom_tool_call"
            return builder.open_call(item["name"], namespace=item.get("namespace"), custom=custom)
    return []


def _closed(builder: ResponseBuilder, item: OutputItem, tokens: tuple[int, int] | None) -> list[StreamEvent]:
    """Close a call, or add a compaction, again. Messages and reasoning are closed by whatever follows."""
    match item["type"]:
        case "function_call" | "custom_tool_call":
            return builder.close_call(complete=item["status"] == "completed")
        case "compaction":
            return builder.compaction(item["encrypted_content"], tokens=tokens)
    return []
