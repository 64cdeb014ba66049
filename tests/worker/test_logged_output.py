"""A job's output: events are persisted before they are published, and another worker resumes from them."""

from collections.abc import Sequence
from typing import Any

import pytest

from inference.scripted.tokenizer import ScriptedTokenizer
from inference.types import Chunk
from responses_api.bus.messages import JobEvents
from responses_api.errors import InvalidRequest, Overloaded
from responses_api.interruptions import StopReason
from responses_api.models import EventBatch, Response, UsageRecord
from responses_api.services.jobs.event_log import Flush, LogCursor, all_batches, append_batches, decoded_events
from responses_api.services.jobs.leases import Lease, claim_responses
from responses_api.streaming import EncodedEvent
from responses_api.worker.generation.logged_output import CannotContinue
from responses_api.worker.generation.prepare_generation import Prepared, prepare_generation
from responses_api.worker.generation.run import Run, new_run
from tests.factories import MODEL
from tests.streaming.streams import check_grammar
from tests.turns import INFO, ApiUser

from .rows import Sent, queue

pytestmark = pytest.mark.django_db(transaction=True)


class SyncLog:
    """A log that persists at once."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.cursor = LogCursor()

    def add(self, events: Sequence[EncodedEvent], chunks: Sequence[Chunk]) -> None:
        batch = self.cursor.batch(events, response=self.lease.response, attempt=self.lease.attempt, feeds=[chunks])
        append_batches([Flush(self.lease, [batch])])

    def drain(self) -> bool:
        return self.lease.rows().exists()

    def batch(self, events: Sequence[EncodedEvent]) -> EventBatch:
        return self.cursor.batch(events, response=self.lease.response, attempt=self.lease.attempt)


@pytest.fixture
def job() -> str:
    ApiUser.make()
    return queue("hello", background=True)


def claimed_job(worker: str) -> tuple[Response, Run]:
    """The waiting job, claimed_job by a worker."""
    (row,) = claim_responses(worker=worker, models=[MODEL], limit=1, background=True)
    lease = Lease(response=row.pk, public_id=row.public_id, worker=worker, attempt=row.attempt)
    return row, new_run(row=row, lease=lease, log=SyncLog(lease))


def started_job(worker: str, *, digest: str = "test") -> tuple[Run, Any]:
    """The waiting job, claimed_job and started, and the request for its engine."""
    row, run = claimed_job(worker)
    prepared = prepare_generation(
        row=row,
        request_id=run.request_id,
        tokenizer=ScriptedTokenizer(),
        info=INFO,
        cache_scope="test",
        continuation=run.start(digest),
    )
    assert isinstance(prepared, Prepared)
    return run, run.begin(prepared)


def feed(run: Run, text: str, *tokens: int, **fields: Any) -> None:
    run.feed([Chunk(request_id=run.sequence_id, text=text, tokens=tokens, **fields)])


def release() -> None:
    Response.objects.update(worker="", lease_until=None)


def log_of(job: str) -> list[Any]:
    return [*decoded_events(all_batches(Response.objects.get(public_id=job).pk))]


def test_a_job_is_resumed_by_another_worker(job: str, sent: Sent) -> None:
    """After the persisted tokens, in one continuous stream; the text that was held back comes once."""
    run, request = started_job("a")
    assert request.generated == ()
    feed(run, "", started=True)
    feed(run, "one ", 1)
    feed(run, "two ", 2)
    run.feed([Chunk(request_id=run.sequence_id, text="held back", finish="cancelled")])
    run.stop(StopReason.SHUTDOWN)
    run.close("cancelled")
    assert Response.objects.get().worker == ""
    run, request = started_job("b")
    assert request.generated == (1, 2)
    feed(run, "", started=True)
    feed(run, "three", 3, finish="stop")
    run.close("stop")
    events = log_of(job)
    check_grammar(events)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert (Response.objects.get().status, UsageRecord.objects.get().output_tokens) == ("completed", 3)
    assert "".join(event.get("delta", "") for event in events) == "one two three"
    last = sent[-1][1]
    assert isinstance(last, JobEvents)
    assert last.last


def test_a_preempted_job_resumes_after_its_tokens(job: str) -> None:
    """As a sequence with another id."""
    run, request = started_job("a")
    feed(run, "one ", 1, started=True)
    run.feed([Chunk(request_id=run.sequence_id, finish="cancelled")])
    again = run.resume()
    assert again is not None
    assert again.id != request.id
    assert (again.prompt, again.generated) == (request.prompt, (1,))


@pytest.mark.parametrize("has_tokens", [True, False])
def test_another_model_does_not_resume_a_published_answer(job: str, *, has_tokens: bool) -> None:
    """If nothing was published, it starts again."""
    run, _ = started_job("a")
    if has_tokens:
        feed(run, "one ", 1, started=True)
    release()
    if has_tokens:
        with pytest.raises(CannotContinue):
            started_job("b", digest="another")
    else:
        assert started_job("b", digest="another")[1].generated == ()


def test_a_job_whose_lease_is_lost_writes_nothing(job: str) -> None:
    """Neither its start, nor its tokens, nor its end."""
    _, run = claimed_job("a")
    release()
    assert run.start("test") is None
    assert run.stop_reason is StopReason.LOST
    run, _ = started_job("b")
    before = log_of(job)
    release()
    started_job("c")
    feed(run, "one ", 1, started=True)
    run.feed([Chunk(request_id=run.sequence_id, finish="stop")])
    run.close("stop")
    assert log_of(job) == before
    assert Response.objects.get().status == "in_progress"


def test_an_engine_that_fails_releases_the_job(job: str) -> None:
    run, _ = started_job("a")
    feed(run, "one ", 1, started=True)
    feed(run, "", finish="error", error="It failed.")
    run.close("error", error="It failed.")
    row = Response.objects.get()
    assert (row.status, row.worker) == ("in_progress", "")


@pytest.mark.parametrize(
    ("error", "stop", "status"),
    [
        (InvalidRequest("Send less."), None, "failed"),
        (InvalidRequest("Send less."), StopReason.CANCELLED, "cancelled"),
        (InvalidRequest("Send less."), StopReason.SHUTDOWN, "queued"),
        (Overloaded("Too much."), None, "queued"),
    ],
)
def test_a_refused_job_ends_or_is_released(job: str, error: Any, stop: StopReason | None, status: str) -> None:
    """A job that this worker has no room for may run on another."""
    _, run = claimed_job("a")
    if stop is not None:
        run.stop(stop)
    run.refuse(error)
    row = Response.objects.get()
    assert (row.status, row.worker) == (status, "")
