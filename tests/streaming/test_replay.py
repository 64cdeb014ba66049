"""A stream is restored from its chunks, and from its events alone."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.types import Chunk, TokenLogprob
from responses_api.protocol.objects import StreamEvent
from responses_api.streaming import ResponseBuilder
from responses_api.streaming.chunk_record import decode_feeds, encode_feeds, holds_tokens
from responses_api.streaming.replay import NotReplayable, replayed_builder
from tests.streaming.steps import STEPS, Steps, take_all
from tests.streaming.streams import Events
from tests.streaming.test_builder_properties import OUTCOMES, base, finish, seal

LOGPROBS = st.builds(
    TokenLogprob,
    token=st.binary(max_size=4),
    logprob=st.floats(-9999, 0),
    top=st.lists(st.tuples(st.binary(max_size=4), st.floats(-9999, 0)), max_size=3).map(tuple),
)
CHUNKS = st.builds(
    Chunk,
    request_id=st.just(""),
    text=st.text(max_size=5),
    tokens=st.lists(st.integers(0, 200_000), max_size=3).map(tuple),
    logprobs=st.lists(LOGPROBS, max_size=2).map(tuple),
)


@given(st.lists(st.lists(CHUNKS, max_size=3), max_size=3), st.integers(0, 1000))
def test_chunks_survive_the_log(feeds: list[list[Chunk]], cached: int) -> None:
    """With what was fed together; without their finish, so that the stream can be resumed."""
    feeds = [[Chunk(request_id="", started=True, cached_tokens=cached)], *feeds]
    assert decode_feeds(encode_feeds(feeds)) == feeds
    assert holds_tokens(encode_feeds(feeds)) == any(chunk.tokens for feed in feeds for chunk in feed)
    assert decode_feeds(encode_feeds([])) == []


def through_json(events: list[StreamEvent]) -> list[StreamEvent]:
    """The events as a log returns them."""
    value: list[StreamEvent] = orjson.loads(orjson.dumps(events))
    return value


@given(STEPS, st.data(), OUTCOMES.filter(lambda outcome: outcome != "completed"), st.booleans(), st.booleans())
def test_events_restore_a_builder(
    steps: Steps, data: st.DataObject, outcome: Any, compacted: bool, sealed: bool
) -> None:
    """Wherever it is cut, it ends as the original would have ended."""
    steps = steps[: data.draw(st.integers(0, len(steps)))]
    made = ResponseBuilder(base(), queued=True, seal=seal if sealed else None)
    events = take_all(made, steps, compacted=compacted)
    again = replayed_builder(base(), through_json(events), seal=seal if sealed else None)
    assert again.snapshot() == made.snapshot()
    assert finish(again, outcome) == finish(made, outcome)
    assert again.snapshot() == made.snapshot()


def test_a_job_may_end_in_the_queue() -> None:
    """Its builder has published no start."""
    waiting = ResponseBuilder(base(), queued=True)
    events = waiting.wait()
    assert [event["type"] for event in events] == ["response.created", "response.queued"]
    again = replayed_builder(base(), through_json(events))
    (end,) = again.finish("cancelled")
    assert (end["type"], end["sequence_number"]) == ("error", 2)
    assert again.snapshot()["status"] == "cancelled"


def test_events_of_another_builder_are_refused() -> None:
    made = ResponseBuilder(base(), queued=True)
    events: Events = [*made.start(), *made.text("hello")]
    events[-1] = {**events[-1], "item_id": "msg_of_an_older_version"}
    with pytest.raises(NotReplayable):
        replayed_builder(base(), events)
