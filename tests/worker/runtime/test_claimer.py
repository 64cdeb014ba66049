"""Claiming: as much as there is room for, jobs for free slots only, and nothing after a stop."""

import threading
from collections.abc import Iterator
from typing import Any, cast
from unittest.mock import patch

import pytest
from django.db import OperationalError

from responses_api.interruptions import StopReason
from responses_api.models import Response
from responses_api.services.jobs.leases import claim_responses
from responses_api.worker.runtime import claimer as claiming
from responses_api.worker.runtime.claimer import Claimer
from responses_api.worker.runtime.log_writer import LogWriter
from responses_api.worker.runtime.preparer import Preparer
from responses_api.worker.runtime.run_table import RunTable
from tests.turns import ApiUser
from tests.worker.rows import queue, wait_until

from .fakes import FakeHost, FakeScheduler

pytestmark = pytest.mark.django_db(transaction=True)


class Harness:
    """A claimer whose runs never end by themselves."""

    def __init__(self) -> None:
        ApiUser.make()
        self.table = RunTable(removed=lambda run: self.claimer.slot_freed())
        self.scheduler = FakeScheduler()
        self.started: list[tuple[Response, Any]] = []
        self.claimer = Claimer(
            worker="worker_1",
            table=self.table,
            host=FakeHost().host,
            scheduler=self.scheduler.scheduler,
            preparer=cast("Preparer", self),
            log_writer=cast("LogWriter", None),
        )

    def begin(self, row: Response, run: Any) -> None:
        """Called as the preparer."""
        self.started.append((row, run))

    @property
    def ids(self) -> list[str]:
        return [row.public_id for row, _ in self.started]

    def end(self, count: int) -> None:
        """End this many of the oldest runs."""
        for run in self.table.live()[:count]:
            run.lease.rows().update(status="completed")
            self.table.remove(run)


@pytest.fixture
def harness(settings: Any) -> Iterator[Harness]:
    settings.RESPONSES_BATCH_SIZE, settings.RESPONSES_CLAIM_AHEAD = 2, 1
    harness = Harness()
    yield harness
    harness.claimer.close()


def test_interactive_requests_are_claimed_ahead_of_the_slots(harness: Harness) -> None:
    """Only up to the limit; each is in the table when it starts."""
    ids = [queue(str(number)) for number in range(5)]
    harness.claimer.wake()
    wait_until(lambda: harness.ids == ids[:3])
    assert [run for _, run in harness.started] == harness.table.live()
    harness.end(1)
    harness.claimer.wake()
    wait_until(lambda: harness.ids == ids[:4])


def test_jobs_are_claimed_for_free_slots_only(harness: Harness) -> None:
    """After all interactive requests, and again whenever a slot is free."""
    jobs = [queue(str(number), background=True) for number in range(3)]
    interactive = queue("now")
    harness.claimer.wake(background=True)
    wait_until(lambda: harness.ids == [interactive, jobs[0]])
    harness.end(1)
    wait_until(lambda: harness.ids[2:] == jobs[1:2])
    harness.end(2)
    wait_until(lambda: harness.ids[3:] == jobs[2:])


def test_jobs_are_queried_only_when_there_may_be_some(harness: Harness) -> None:
    """A claim for interactive requests does not wait for that query."""
    queried: list[bool] = []

    def record(*, background: bool, **arguments: Any) -> list[Response]:
        queried.append(background)
        return claim_responses(background=background, **arguments)

    with patch.object(claiming, "claim_responses", record):
        harness.claimer.wake()
        wait_until(lambda: queried == [False, True])  # a new worker knows no jobs
        harness.claimer.wake()
        wait_until(lambda: queried == [False, True, False])
        harness.claimer.slot_freed()
        harness.claimer.wake(background=True)
        wait_until(lambda: queried == [False, True, False, False, True])


def test_nothing_is_claimed_after_a_stop(harness: Harness) -> None:
    """Rows of a claim in progress are stopped before they start."""
    may_return = threading.Event()
    entered = threading.Event()

    def claim_late(**arguments: Any) -> list[Response]:
        rows = claim_responses(**arguments)
        entered.set()
        may_return.wait(10)
        return rows

    queue("hello")
    with patch.object(claiming, "claim_responses", claim_late):
        harness.claimer.wake()
        assert entered.wait(10)
        harness.claimer.stop()
        may_return.set()
        wait_until(lambda: harness.started)
    queue("more")
    harness.claimer.wake(background=True)
    harness.claimer.close()
    ((_, run),) = harness.started
    assert run.stop_reason is StopReason.SHUTDOWN


def test_a_job_that_was_lost_and_claimed_again_stops_the_earlier_run(harness: Harness) -> None:
    """The later run owns the row."""
    queue("hello", background=True)
    harness.claimer.wake()
    wait_until(lambda: len(harness.started) == 1)
    Response.objects.update(worker="", lease_until=None)
    harness.claimer.wake(background=True)
    wait_until(lambda: len(harness.started) == 2)
    earlier, later = (run for _, run in harness.started)
    assert harness.scheduler.cancelled == [earlier]
    assert earlier.stop_reason is StopReason.LOST
    assert harness.table.live() == [later]


def test_a_job_with_a_cancellation_request_is_stopped_from_the_start(harness: Harness) -> None:
    queue("hello", background=True)
    Response.objects.update(cancel_requested_at="2026-01-01T00:00:00Z")
    harness.claimer.wake()
    wait_until(lambda: harness.started)
    ((_, run),) = harness.started
    assert run.stop_reason is StopReason.CANCELLED


@pytest.mark.parametrize("error", [OperationalError("unavailable"), RuntimeError("an unexpected error")])
def test_a_claim_that_fails_is_retried_by_the_next_call(harness: Harness, error: Exception) -> None:
    public_id = queue("hello")
    failed = threading.Event()

    def fail(**arguments: Any) -> list[Response]:
        failed.set()
        raise error

    with patch.object(claiming, "claim_responses", fail):
        harness.claimer.wake()
        assert failed.wait(10)
    harness.claimer.wake()
    wait_until(lambda: harness.ids == [public_id])
