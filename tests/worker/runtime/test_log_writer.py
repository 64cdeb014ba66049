"""The event log's writer: in order, fenced, and patient with an unavailable database."""

import threading
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
from django.db import OperationalError

from inference.types import Chunk
from responses_api.models import EventBatch, Response
from responses_api.services.admission.create_response import create_response, new_response_id
from responses_api.services.jobs.event_log import LogCursor, all_batches, append_batches, decoded_events, read_page
from responses_api.services.jobs.leases import Lease, claim_responses
from responses_api.streaming import encode_event
from responses_api.worker.runtime import log_writer
from responses_api.worker.runtime.log_writer import JobLog, LogWriter
from tests.factories import MODEL
from tests.turns import ApiUser

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def written() -> list[tuple[str, int, int]]:
    return []


@pytest.fixture
def lost() -> list[Lease]:
    return []


@pytest.fixture
def writer(written: list[tuple[str, int, int]], lost: list[Lease]) -> Iterator[LogWriter]:
    writer = LogWriter(
        written=lambda lease, first, events: written.append((lease.public_id, first, len(events))), lost=lost.append
    )
    writer.start()
    yield writer
    writer.stop(10)


def claimed_jobs(count: int) -> list[Lease]:
    """Background rows that a worker owns."""
    user = ApiUser.make()
    payload = {"input": "hello", "background": True}
    for _ in range(count):
        create_response(caller=user.caller, public_id=new_response_id(), payload=payload)
    rows = claim_responses(worker="a", models=[MODEL], limit=count, background=True)
    return [Lease(response=row.pk, public_id=row.public_id, worker="a", attempt=row.attempt) for row in rows]


def job_log(lease: Lease, writer: LogWriter) -> JobLog:
    return JobLog(lease, LogCursor.after(all_batches(lease.response)), writer)


def events(first: int, count: int) -> list[tuple[str, str]]:
    deltas: list[Any] = [
        {"type": "response.output_text.delta", "sequence_number": number, "delta": "é\n"}
        for number in range(first, first + count)
    ]
    return [encode_event(delta) for delta in deltas]


def test_events_are_persisted_in_order_and_then_published(
    writer: LogWriter, written: list[tuple[str, int, int]]
) -> None:
    """Without a gap after the first batch, which admission wrote; with their tokens."""
    (lease,) = claimed_jobs(1)
    Response.objects.update(lost_attempts=2)
    log = job_log(lease, writer)
    for first in range(2, 12, 2):
        log.add(events(first, 2), [Chunk(request_id="r", text="é", tokens=(first,))])
    assert log.drain()
    batches = all_batches(lease.response)
    assert [event["sequence_number"] for event in decoded_events(batches)] == list(range(12))
    assert [batch.number for batch in batches] == list(range(len(batches)))
    assert sum(count for _, _, count in written) == 10
    assert Response.objects.get().lost_attempts == 0
    page = read_page(lease.response, 5)
    assert len(page.events) == 7
    assert not page.is_end


def test_a_lost_job_writes_nothing_and_others_do(writer: LogWriter, lost: list[Lease]) -> None:
    """The worker that has claimed it since is not disturbed."""
    own, taken = claimed_jobs(2)
    Response.objects.filter(pk=taken.response).update(attempt=taken.attempt + 1, worker="b")
    logs = [job_log(lease, writer) for lease in (own, taken)]
    for log in logs:
        log.add(events(2, 3), [])
    assert [log.drain() for log in logs] == [True, False]
    assert lost == [taken]
    assert EventBatch.objects.filter(response_id=own.response).count() == 2
    assert EventBatch.objects.filter(response_id=taken.response).count() == 1


def test_an_unavailable_database_loses_nothing(
    writer: LogWriter, written: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writes are retried until it is back; nothing is published before."""
    (lease,) = claimed_jobs(1)
    log = job_log(lease, writer)
    monkeypatch.setattr(log_writer, "RETRY_SECONDS", 0.01)
    failing, failed = threading.Event(), threading.Event()
    failing.set()

    def append(flushes: Any) -> Any:
        if failing.is_set():
            failed.set()
            raise OperationalError("unavailable")
        return append_batches(flushes)

    with patch.object(log_writer, "append_batches", append):
        log.add(events(2, 1), [])
        assert failed.wait(10)
        log.add(events(3, 1), [])
        assert not written
        failing.clear()
        assert log.drain()
    assert len(decoded_events(all_batches(lease.response))) == 4


def test_events_that_cannot_be_written_delay_no_others(writer: LogWriter, lost: list[Lease]) -> None:
    good, bad = claimed_jobs(2)

    def append(flushes: Any) -> Any:
        if any(flush.lease == bad for flush in flushes):
            raise ValueError("can't be written")
        return append_batches(flushes)

    logs = [job_log(lease, writer) for lease in (good, bad)]
    with patch.object(log_writer, "append_batches", append):
        for log in logs:
            log.add(events(2, 1), [])
        assert [log.drain() for log in logs] == [True, False]
    assert lost == [bad]
