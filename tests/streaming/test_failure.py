"""A stream whose worker is lost is ended by its reader, as the worker would have ended it."""

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_api.streaming import ResponseBuilder, SeenStream, encode_event, failure, failure_events, terminal_events
from tests.streaming.steps import STEPS, Steps, take_all
from tests.streaming.streams import Events, check_grammar, check_items, parse
from tests.streaming.test_builder_properties import base, finish, seal


@given(STEPS, st.data(), st.booleans())
def test_a_reader_ends_a_stream_as_its_worker_would_have(steps: Steps, data: st.DataObject, compacted: bool) -> None:
    """Wherever it is cut and however its events came: open items are closed, and the published text is kept."""
    steps = steps[: data.draw(st.integers(0, len(steps)))]
    made = ResponseBuilder(base())
    events: Events = [*take_all(made, steps, compacted=compacted)]
    seen, rest = SeenStream(), [encode_event(event) for event in events]
    with patch.object(failure, "JOINED_BYTES", data.draw(st.sampled_from([0, 300, 1 << 18]))):
        while rest:
            size = data.draw(st.integers(1, len(rest)))
            seen.see(rest[:size])
            rest = rest[size:]
    end = seen.failure("The engine stopped.")
    assert end == finish(made, "failed")
    parse([*events, *end])
    check_grammar([*events, *end])
    check_items([*events, *end])


def test_a_finished_item_keeps_what_its_worker_sealed() -> None:
    """The reader has no secret, and needs none."""
    made = ResponseBuilder(base(), seal=seal)
    events = [*made.start(), *made.reasoning("Well."), *made.text("Hm")]
    seen = SeenStream()
    before = seen.has_begun
    seen.see([encode_event(event) for event in events])
    assert (before, seen.has_begun) == (False, True)
    ending: Events = [*seen.failure("The engine stopped.")]
    output = ending[-1]["response"]["output"]
    assert output == finish(made, "failed")[-1]["response"]["output"]
    assert output[0]["encrypted_content"] == "sealed:5"


def test_a_stream_too_large_to_be_buffered_ends_without_output() -> None:
    """The numbers continue, the object fails, and known items stay unchanged."""
    events: Events = [*ResponseBuilder(base()).start()]
    known = events[0]["response"]
    events += failure_events(known, sequence_number=len(events), message="Too large.")
    parse(events)
    assert [event["type"] for event in events[-2:]] == ["error", "response.failed"]
    assert [event["sequence_number"] for event in events] == [0, 1, 2, 3]
    error = {"code": "server_error", "message": "Too large."}
    assert events[-1]["response"] == {**known, "status": "failed", "error": error}
    assert known["status"] == "in_progress"


@pytest.mark.parametrize(
    ("status", "kinds"),
    [
        ("completed", ["response.completed"]),
        ("incomplete", ["response.incomplete"]),
        ("cancelled", ["error"]),
        ("failed", ["error", "response.failed"]),
    ],
)
def test_a_stream_without_a_log_ends_as_its_object_says(status: str, kinds: list[str]) -> None:
    """Numbers continue from the reader's last event. A failure has its error, and a cancelled response no object."""
    response = {**base(), "status": status, "error": {"code": "server_error", "message": "It broke."}}
    events = terminal_events(response, sequence_number=7)  # type: ignore[arg-type]
    assert [event["type"] for event in events] == kinds
    assert [event["sequence_number"] for event in events] == [7, 8][: len(events)]
    assert events[-1].get("response", response) == response
    codes = {"cancelled": "response_cancelled", "failed": "server_error"}
    assert events[0].get("code") == codes.get(status)
