"""The first and last events of a stream."""

from typing import Any

import pytest

from responses_api.streaming import ResponseBuilder
from tests.streaming.streams import Events
from tests.streaming.test_builder_properties import USAGE, base, build, texts


def types(events: Events) -> list[object]:
    return [event["type"] for event in events]


def test_first_event_carries_the_whole_object() -> None:
    """With the effective values, but without usage and output."""
    beginning: Events = [*ResponseBuilder(base()).start()]
    created, in_progress = beginning
    assert created == {"type": "response.created", "sequence_number": 0, "response": base()}
    assert in_progress["response"] == {**base(), "status": "in_progress"}


def test_a_jobs_stream_begins_in_the_queue() -> None:
    events: Events = [*ResponseBuilder(base(), queued=True).start()]
    assert types(events) == ["response.created", "response.queued", "response.in_progress"]
    assert [event["response"]["status"] for event in events] == ["queued", "queued", "in_progress"]


def test_completed_answer() -> None:
    events, stored = build(texts("Hel", "", "lo"), "completed")
    assert types(events) == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert (stored["usage"], stored["completed_at"], stored["error"]) == (USAGE, 1_700_000_001, None)
    assert events[-1]["response"] == stored


def test_completed_answer_without_text_is_an_empty_message() -> None:
    """So that `output_text` is there, and is empty."""
    _, stored = build([], "completed")
    output: list[Any] = [*stored["output"]]
    [message] = output
    assert (message["status"], message["content"][0]["text"]) == ("completed", "")


def test_cut_answer_is_incomplete_throughout() -> None:
    """Response, item and terminal event say so, and the response says why."""
    events, stored = build(texts("Hel"), "incomplete")
    assert events[-1]["type"] == "response.incomplete"
    assert events[-2]["item"]["status"] == "incomplete"
    assert stored["incomplete_details"] == {"reason": "max_output_tokens"}
    assert (stored["status"], stored["completed_at"]) == ("incomplete", None)
    assert build([], "incomplete")[1]["output"] == []


def test_error_is_an_error_event_and_a_failed_response() -> None:
    events, stored = build(texts("Hel"), "failed")
    assert types(events)[-3:] == ["response.output_item.done", "error", "response.failed"]
    error = {"code": "server_error", "message": "The engine stopped."}
    assert events[-2] == {"type": "error", "sequence_number": 8, "param": None, **error}
    assert stored["error"] == error
    (item,) = stored["output"]
    assert item.get("status") == "incomplete"


def test_cancelled_job_ends_with_an_error_event() -> None:
    """There is no event type for it; the object says `cancelled`."""
    events, stored = build(texts("Hel"), "cancelled")
    assert types(events)[-2:] == ["response.output_item.done", "error"]
    assert events[-1]["code"] == "response_cancelled"
    assert (stored["status"], stored["error"]) == ("cancelled", None)


def test_misuse_is_an_error_of_the_caller() -> None:
    """One start, one end, text only between them, and a reason for a failure."""
    builder = ResponseBuilder(base())
    with pytest.raises(RuntimeError):
        builder.text("too early")
    builder.start()
    with pytest.raises(RuntimeError):
        builder.start()
    with pytest.raises(ValueError, match="needs an error"):
        builder.finish("failed")
    builder.finish("completed")
    with pytest.raises(RuntimeError):
        builder.text("too late")
    with pytest.raises(RuntimeError):
        builder.finish("completed")


def test_an_end_is_replaced_only_when_there_is_one() -> None:
    builder = ResponseBuilder(base())
    builder.start()
    with pytest.raises(RuntimeError, match="not ended"):
        builder.fail_instead({"code": "server_error", "message": "Too large."})
