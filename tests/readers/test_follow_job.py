"""Readers of a job's stream: whichever messages are lost, they see each event once and in order."""

import random
from typing import Any

import orjson
import pytest
from asgiref.sync import sync_to_async

from responses_api import bus
from responses_api.bus.messages import JobEvents
from responses_api.models import EventBatch, Response
from responses_api.readers.follow_job import JobReader, reading
from responses_api.readers.reader import ReadingStopped
from responses_api.selectors.jobs import JobState
from responses_api.services.admission.create_response import create_response, new_response_id
from responses_api.services.jobs.end_job import publish_job_events
from responses_api.services.jobs.event_log import LogCursor, all_batches
from responses_api.streaming import EncodedEvent, ResponseBuilder, encode_event
from tests.turns import ApiUser

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "one two three four five six seven eight nine ten"


def queue() -> Response:
    payload = {"input": "hello", "background": True}
    return create_response(
        caller=ApiUser.make().caller,
        public_id=new_response_id(),
        payload=payload,
    )


def stream(row: Response) -> list[EncodedEvent]:
    """All events of the job."""
    builder = ResponseBuilder(row.body_dict(), queued=True)
    events = builder.start()
    for word in TEXT.split():
        events += builder.text(word)
    return [encode_event(event) for event in [*events, *builder.finish("completed", completed_at=1)]]


class Worker:
    """Persists a few events at a time, and returns the message that publishes them, which a test may lose."""

    def __init__(self, row: Response) -> None:
        self.row = row
        self.cursor = LogCursor.after(all_batches(row.pk))
        self.events = stream(row)

    def persist(self, count: int) -> JobEvents:
        """Persist the next events. Returns the message that publishes them."""
        first = self.cursor.next_event
        events = self.events[first : first + count]
        last = first + len(events) == len(self.events)
        self.cursor.batch(events, response=self.row.pk, attempt=1, is_end=last).save(force_insert=True)
        return JobEvents(first=first, events=tuple(events), last=last)

    @property
    def has_ended(self) -> bool:
        return self.cursor.next_event == len(self.events)


async def read_all(reader: JobReader) -> list[int]:
    """The sequence numbers that a reader sees, to the end of its stream."""
    return [
        orjson.loads(text)["sequence_number"] async for events in reader.batches(keepalive=0.05) for _, text in events
    ]


@pytest.mark.parametrize("seed", range(12))
async def test_messages_may_be_lost_duplicated_and_late(seed: int) -> None:
    """The log has the missing events."""
    choose = random.Random(seed)
    row = await sync_to_async(queue)()
    worker = await sync_to_async(Worker)(row)
    first = choose.choice([0, 0, 3, 5])
    seen: list[int] = []
    late: list[JobEvents] = []
    if choose.random() < 0.5:
        await sync_to_async(worker.persist)(6)
    async with reading(row.public_id) as reader:
        reader.start(row, first)
        async for events in reader.batches(keepalive=0.01):
            seen += [orjson.loads(text)["sequence_number"] for _, text in events]
            if not worker.has_ended:
                message = await sync_to_async(worker.persist)(choose.randint(1, 4))
                fate = choose.random()
                if fate < 0.5:
                    bus.publish(bus.response_group(row.public_id), message)
                elif fate < 0.7:
                    late.append(message)
                if choose.random() < 0.3 and late:
                    bus.publish(bus.response_group(row.public_id), choose.choice(late))
            reader.observe(JobState.ALIVE)
    assert seen == list(range(first, len(worker.events)))


async def test_a_reader_that_falls_behind_gets_an_error(settings: Any) -> None:
    """An error event ends its stream; no event is skipped silently."""
    settings.RESPONSES_EVENTS_MAX_COUNT = 5
    row = await sync_to_async(queue)()
    worker = await sync_to_async(Worker)(row)
    async with reading(row.public_id) as reader:
        reader.start(row, 0)
        batches = reader.batches(keepalive=0.05)
        assert len(await anext(batches)) == 2
        await sync_to_async(worker.persist)(10)
        reader.observe(JobState.ALIVE)
        while not (events := await anext(batches)):
            pass
        ((kind, text),) = events
        assert kind == "error"
        assert orjson.loads(text)["code"] == "cursor_expired"
        with pytest.raises(StopAsyncIteration):
            await anext(batches)


async def test_a_reader_whose_job_is_removed_gets_a_failure() -> None:
    """For example with its project: a stream always has a last event."""
    row = await sync_to_async(queue)()
    async with reading(row.public_id) as reader:
        reader.start(row, 0)
        batches = reader.batches(keepalive=0.05)
        assert len(await anext(batches)) == 2
        await sync_to_async(EventBatch.objects.all().delete)()
        await sync_to_async(row.delete)()
        reader.observe(JobState.EXPIRED)
        while not (events := await anext(batches)):
            pass
    assert [kind for kind, _ in events] == ["error", "response.failed"]
    last = orjson.loads(events[-1][1])
    assert (last["sequence_number"], last["response"]["id"], last["response"]["status"]) == (3, row.public_id, "failed")


async def test_a_reader_whose_process_ends_gets_no_terminal_event() -> None:
    """Its stream breaks off, so that the client resumes it."""
    row = await sync_to_async(queue)()
    async with reading(row.public_id) as reader:
        reader.start(row, 0)
        batches = reader.batches(keepalive=30)
        assert len(await anext(batches)) == 2
        reader.give_up()
        with pytest.raises(ReadingStopped):
            await anext(batches)


async def test_a_message_is_enough(settings: Any) -> None:
    """Events that come by message are not read from the database."""
    row = await sync_to_async(queue)()
    worker = await sync_to_async(Worker)(row)
    async with reading(row.public_id) as reader:
        reader.start(row, 2)
        batches = reader.batches(keepalive=30)
        message = await sync_to_async(worker.persist)(100)
        publish_job_events(row.public_id, message.first, list(message.events), last=True)
        assert [events async for events in batches if events] == [list(message.events)]


@pytest.mark.parametrize("status", ["completed", "cancelled"])
async def test_a_stream_whose_log_expires_ends_as_the_job_did(status: str) -> None:
    """Once the log has expired, the stored response says how it ended."""
    row = await sync_to_async(queue)()
    async with reading(row.public_id) as reader:
        reader.start(row, 0)
        batches = reader.batches(keepalive=30)
        seen = list(await anext(batches))
        await Response.objects.filter(pk=row.pk).aupdate(status=status)
        await EventBatch.objects.filter(response=row).adelete()
        reader.observe(JobState.ENDED)
        last = [event async for events in batches for event in events]
    (end,) = [orjson.loads(text) for _, text in last]
    assert end["sequence_number"] == len(seen)
    if status == "completed":
        assert (end["type"], end["response"]["status"]) == ("response.completed", "completed")
    else:
        assert (end["type"], end["code"]) == ("error", "response_cancelled")
