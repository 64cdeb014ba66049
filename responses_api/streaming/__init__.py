"""Builds wire events and the stored object from an engine's chunks. Pure: no Django, no clock, no I/O."""

from responses_api.streaming.answer import Answer
from responses_api.streaming.builder import ResponseBuilder
from responses_api.streaming.compaction import CompactionBuilder
from responses_api.streaming.events import EncodedEvent, Event, IncompleteReason, Outcome
from responses_api.streaming.failure import SeenStream, failure_events, terminal_events
from responses_api.streaming.sse import DONE, PING, comment, encode, encode_event, frame

__all__ = [
    "DONE",
    "PING",
    "Answer",
    "CompactionBuilder",
    "EncodedEvent",
    "Event",
    "IncompleteReason",
    "Outcome",
    "ResponseBuilder",
    "SeenStream",
    "comment",
    "encode",
    "encode_event",
    "failure_events",
    "frame",
    "terminal_events",
]
