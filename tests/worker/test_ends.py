"""Ends that go wrong: published once, with all items closed, and released from memory."""

import gc
import time
import weakref
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from django.db import OperationalError

from responses_api import bus
from responses_api.bus.messages import JobEvents, Message, ReaderBehind, ResponseEvents, ResponseResult
from responses_api.errors import ApiError, EntryTooLarge
from responses_api.models import Response
from responses_api.services.jobs.event_log import all_batches, decoded_events
from responses_api.services.jobs.finish_response import finish_response
from responses_api.services.jobs.leases import Lease
from responses_api.worker.generation import ending
from responses_api.worker.generation.published_events import BUFFER_BYTES, PublishedEvents
from responses_api.worker.generation.run import Run
from responses_api.worker.runtime.ended_streams import EndedStreams
from responses_api.worker.runtime.worker import GenerationWorker
from tests.streaming.streams import check_grammar

from .rows import Sent, queue, wait_until_ended

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def long_lease(request: pytest.FixtureRequest, settings: Any) -> None:
    """A long lease: readers here announce no process, and would count as dead on a slow machine."""
    if "worker" in request.fixturenames:
        request.getfixturevalue("worker")
        settings.RESPONSES_LEASE_SECONDS = 60


def events_of(sent: Sent, public_id: str) -> list[dict[str, Any]]:
    """All events published to the readers of a response."""
    messages = [message for group, message in sent if group == bus.response_group(public_id)]
    return [orjson.loads(text) for message in messages for _, text in texts_of(message)]


def texts_of(message: Message) -> tuple[tuple[str, str], ...]:
    """The events in a message."""
    assert isinstance(message, ResponseEvents | JobEvents)
    return message.events


def error_of(sent: Sent, public_id: str) -> ApiError:
    """The error in the only message to the reader of a whole response."""
    (message,) = [message for group, message in sent if group == bus.response_group(public_id)]
    assert isinstance(message, ResponseResult)
    assert message.error is not None
    return message.error.as_error()


@pytest.mark.parametrize("background", [False, True])
def test_an_answer_too_large_to_store_closes_its_items_first(
    worker: GenerationWorker, sent: Sent, settings: Any, *, background: bool
) -> None:
    """As incomplete, with the published text; the stored response has no output."""
    settings.RESPONSES_ENTRY_MAX_BYTES = 5000
    public_id = queue("[[tokens: 1500]]", background=background)
    worker.wake(background=background)
    wait_until_ended(worker)
    events: list[Any] = [*events_of(sent, public_id)]
    if background:
        events = [*decoded_events(all_batches(Response.objects.get(public_id=public_id).pk))]
    check_grammar(events)
    done, error, failed = events[-3:]
    assert (done["type"], done["item"]["status"]) == ("response.output_item.done", "incomplete")
    assert done["item"]["content"][0]["text"] == "".join(
        event["delta"] for event in events if event["type"] == "response.output_text.delta"
    )
    assert (error["type"], failed["type"]) == ("error", "response.failed")
    assert failed["response"]["output"] == []
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


def test_an_event_too_large_for_a_jobs_log_closes_its_item_first(
    worker: GenerationWorker, sent: Sent, settings: Any
) -> None:
    """Without its text, which is too large for the log."""
    settings.RESPONSES_EVENTS_MAX_BYTES = 4000
    # Slowly, so that no delta is as long as the whole text, which the last event has.
    public_id = queue("[[slow: 0.0005]][[tokens: 1500]]", background=True)
    worker.wake(background=True)
    wait_until_ended(worker)
    done, error, failed = events_of(sent, public_id)[-3:]
    assert (done["type"], done["item"]["status"], done["item"]["content"]) == (
        "response.output_item.done",
        "incomplete",
        [],
    )
    assert (error["type"], failed["type"]) == ("error", "response.failed")
    assert Response.objects.get(public_id=public_id).status == "failed"


def test_the_reader_of_a_whole_response_gets_an_error_if_it_is_too_large(
    worker: GenerationWorker, sent: Sent, settings: Any
) -> None:
    """The error is 413, with `x-should-retry: false`."""
    settings.RESPONSES_ENTRY_MAX_BYTES = 5000
    public_id = queue("[[tokens: 1500]]", stream=False)
    worker.wake()
    wait_until_ended(worker)
    error = error_of(sent, public_id)
    assert isinstance(error, EntryTooLarge)
    assert error.headers["x-should-retry"] == "false"


def test_an_answer_that_takes_too_long_closes_its_item_and_need_not_be_retried(
    worker: GenerationWorker, sent: Sent, settings: Any
) -> None:
    """In a stream, and for the reader of a whole response."""
    settings.RESPONSES_FOREGROUND_TIMEOUT_SECONDS = 0.5
    streamed, whole = (queue("[[tokens: 5000]][[slow: 0.02]]", stream=stream) for stream in (True, False))
    worker.wake()
    wait_until_ended(worker)
    closed, error, failed = events_of(sent, streamed)[-3:]
    assert (closed["type"], closed["item"]["status"]) == ("response.output_item.done", "incomplete")
    assert (error["type"], failed["type"]) == ("error", "response.failed")
    refusal = error_of(sent, whole)
    assert (refusal.status, refusal.headers) == (500, {"x-should-retry": "false"})


@pytest.mark.parametrize("store", [True, False])
def test_an_end_whose_confirmation_was_lost_is_published(worker: GenerationWorker, sent: Sent, *, store: bool) -> None:
    """It was stored, but the worker's connection broke before the confirmation came."""
    tries: list[bool] = []

    def break_after_the_first(**arguments: Any) -> bool:
        stored = finish_response(**arguments)
        tries.append(stored)
        if len(tries) == 1:
            raise OperationalError("server closed the connection unexpectedly")
        return stored

    with patch.object(ending, "finish_response", break_after_the_first):
        public_id = queue("hello", store=store)
        worker.wake()
        wait_until_ended(worker)
    assert tries == [True, False]
    assert events_of(sent, public_id)[-1]["type"] == "response.completed"


def test_ended_runs_are_released(worker: GenerationWorker, sent: Sent) -> None:
    """Only the events of a generation stay, while its reader may request them again."""
    made: list[weakref.ref[Run]] = []
    table = worker.table
    add = table.add

    def watched(run: Run) -> Run | None:
        made.append(weakref.ref(run))
        return add(run)

    with patch.object(table, "add", watched):
        ids = [queue("[[tokens: 3]]" + "x" * 50_000, store=False) for _ in range(8)]
        worker.wake()
        wait_until_ended(worker)
    assert len(made) == 8
    deadline = time.monotonic() + 10
    # A thread may reference its last run until its next one.
    while sum(run() is not None for run in made) > 4:
        assert time.monotonic() < deadline, "ended runs are still in memory"
        gc.collect()
        time.sleep(0.05)
    assert worker.ended.memory < 8 * 50_000
    while any(public_id in worker.ended for public_id in ids):
        assert time.monotonic() < deadline, "expired events are still in memory"
        time.sleep(0.1)
    assert worker.ended.memory == 0


LEASE = Lease(response=1, public_id="resp_1", worker="worker_1", attempt=1)


def test_a_reader_that_is_too_far_behind_gets_a_message(sent: Sent) -> None:
    """The events that it requests are dropped; the latest are kept."""
    published = PublishedEvents(LEASE, reader="web_1", whole=False)
    events = [("response.output_text.delta", f'{{"n": {number}}}' + "x" * 100_000) for number in range(100)]
    for event in events:
        published.add([event])
    assert published.memory <= BUFFER_BYTES
    sent.clear()
    published.replay(0)
    assert [message for _, message in sent] == [ReaderBehind(attempt=1)]
    sent.clear()
    published.replay(90)
    assert [event for _, message in sent for event in texts_of(message)] == events[90:]
    assert not any(isinstance(message, ResponseEvents) and message.last for _, message in sent)
    sent.clear()
    published.end([("response.completed", "{}")])
    published.replay(100)
    assert [(message.first, message.last) for _, message in sent if isinstance(message, ResponseEvents)] == [
        (100, True),
        (100, True),
    ]


def test_the_events_of_ended_responses_are_bounded_in_bytes() -> None:
    """The oldest go first."""
    ended = EndedStreams(seconds=60)
    with patch.object(bus, "publish"):
        for number in range(40):
            published = PublishedEvents(LEASE, reader="web_1", whole=True)
            published.end([("response.completed", "x" * (1 << 20))])
            ended.add(f"resp_{number}", published)
    assert ended.memory <= 16 << 20
    assert "resp_39" in ended
    assert "resp_0" not in ended
