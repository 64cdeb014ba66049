"""A stream builder brought back to where a stream was, from its events alone: so that it can be ended. Pure.

Whoever ends a stream whose worker is gone has neither its model nor its tokens, but the events that readers have seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from responses_api.protocol.objects import Response
from responses_api.protocol.objects.items import Phase
from responses_api.streaming.builder import ResponseBuilder
from responses_api.streaming.events import Event

CALLS = ("function_call", "custom_tool_call")


class NotReplayable(Exception):
    """The events are not the beginning of a stream that this builder makes."""


def replayed_builder(
    base: Response, events: Sequence[Event], *, seal: Callable[[str], str] | None = None
) -> ResponseBuilder:
    """The builder that has made these events of a job's stream. Raises :class:`NotReplayable` when it would not."""
    builder = ResponseBuilder(base, queued=True, seal=seal)
    made = builder.wait()
    if len(events) > len(made):
        made += builder.begin()
    made += replay(builder, events[len(made) :])
    if made[: len(events)] != list(events):
        raise NotReplayable
    return builder


def replay(builder: ResponseBuilder, events: Iterable[Event]) -> list[Event]:
    """Give a builder that has begun what these events say that it was given; returns what it makes of that."""
    made: list[Event] = []
    phase: Phase | None = None
    tokens: tuple[int, int] | None = None
    for event in events:
        match event:
            case {"type": "response.output_item.added", "item": {"type": "message"}}:
                phase = event["item"].get("phase")
            case {"type": "response.output_text.delta", "delta": delta}:
                made += builder.text(delta, phase=phase, logprobs=event["logprobs"])
            case {"type": "response.reasoning_text.delta", "delta": delta}:
                made += builder.reasoning(delta)
            case {"type": "response.output_item.added", "item": {"type": "function_call" | "custom_tool_call"}}:
                item = event["item"]
                is_custom = item["type"] == "custom_tool_call"
                made += builder.open_call(item["name"], namespace=item.get("namespace"), custom=is_custom)
            case {"type": "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta"}:
                made += builder.call_text(event["delta"])
            case {"type": "response.output_item.done", "item": {"type": type, "status": status}} if type in CALLS:
                made += builder.close_call(complete=status == "completed")
            case {"type": "mlx.compaction.completed"}:
                tokens = event["input_tokens_before"], event["input_tokens_after"]
            case {"type": "response.output_item.done", "item": {"type": "compaction"}}:
                made += builder.compaction(event["item"]["encrypted_content"], tokens=tokens)
    return made
