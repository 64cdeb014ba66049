"""Claiming: as much as there is room for, jobs for free slots only, and nothing once it is to stop."""

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


class Place:
    """A claimer whose runs never end by themselves."""

    def __init__(self) -> None:
        ApiUser.make()
        self.table = RunTable(removed=lambda run: self.claimer.slot_freed())
        self.scheduler = FakeScheduler()
        self.begun: list[tuple[Response, Any]] = []
        self.claimer = Claimer(
            worker="worker_1",
            table=self.table,
            host=FakeHost().host,
            scheduler=self.scheduler.scheduler,
            preparer=cast("Preparer", self),
            log_writer=cast("LogWriter", None),
        )

    def begin(self, row: Response, run: Any) -> None:
        """In the place of a preparer."""
        self.begun.append((row, run))

    @property
    def ids(self) -> list[str]:
        return [row.public_id for row, _ in self.begun]

    def end(self, count: int) -> None:
        """Have as many of the oldest runs end."""
        for run in self.table.live()[:count]:
            run.lease.rows().update(status="completed")
            self.table.remove(run)


@pytest.fixture
def place(settings: Any) -> Iterator[Place]:
    settings.RESPONSES_BATCH_SIZE, settings.RESPONSES_CLAIM_AHEAD = 2, 1
    place = Place()
    yield place
    place.claimer.close()


def test_interactive_requests_are_claimed_ahead_of_the_slots(place: Place) -> None:
    """So far and no further; each is in the table when it begins."""
    ids = [queue(str(number)) for number in range(5)]
    place.claimer.wake()
    wait_until(lambda: place.ids == ids[:3])
    assert [run for _, run in place.begun] == place.table.live()
    place.end(1)
    place.claimer.wake()
    wait_until(lambda: place.ids == ids[:4])


def test_jobs_are_claimed_for_free_slots_only(place: Place) -> None:
    """After all interactive requests, and again whenever a slot is free."""
    jobs = [queue(str(number), background=True) for number in range(3)]
    interactive = queue("now")
    place.claimer.wake(background=True)
    wait_until(lambda: place.ids == [interactive, jobs[0]])
    place.end(1)
    wait_until(lambda: place.ids[2:] == jobs[1:2])
    place.end(2)
    wait_until(lambda: place.ids[3:] == jobs[2:])


def test_jobs_are_looked_for_only_when_there_may_be_some(place: Place) -> None:
    """A claim for interactive requests does not wait for that look."""
    looked: list[bool] = []

    def note(*, background: bool, **arguments: Any) -> list[Response]:
        looked.append(background)
        return claim_responses(background=background, **arguments)

    with patch.object(claiming, "claim_responses", note):
        place.claimer.wake()
        wait_until(lambda: looked == [False, True])  # a new worker knows of none
        place.claimer.wake()
        wait_until(lambda: looked == [False, True, False])
        place.claimer.slot_freed()
        place.claimer.wake(background=True)
        wait_until(lambda: looked == [False, True, False, False, True])


def test_nothing_is_claimed_once_it_is_to_stop(place: Place) -> None:
    """What a claim under way brings is stopped before it begins."""
    go_on = threading.Event()
    entered = threading.Event()

    def claim_late(**arguments: Any) -> list[Response]:
        rows = claim_responses(**arguments)
        entered.set()
        go_on.wait(10)
        return rows

    queue("hello")
    with patch.object(claiming, "claim_responses", claim_late):
        place.claimer.wake()
        assert entered.wait(10)
        place.claimer.stop()
        go_on.set()
        wait_until(lambda: place.begun)
    queue("more")
    place.claimer.wake(background=True)
    place.claimer.close()
    ((_, run),) = place.begun
    assert run.stop_reason is StopReason.SHUTDOWN


def test_a_job_that_was_lost_and_claimed_again_stops_the_earlier_run(place: Place) -> None:
    """The later one has the row."""
    queue("hello", background=True)
    place.claimer.wake()
    wait_until(lambda: len(place.begun) == 1)
    Response.objects.update(worker="", lease_until=None)
    place.claimer.wake(background=True)
    wait_until(lambda: len(place.begun) == 2)
    earlier, later = (run for _, run in place.begun)
    assert place.scheduler.cancelled == [earlier]
    assert earlier.stop_reason is StopReason.LOST
    assert place.table.live() == [later]


def test_a_job_that_is_to_be_cancelled_is_stopped_from_the_start(place: Place) -> None:
    queue("hello", background=True)
    Response.objects.update(cancel_requested_at="2026-01-01T00:00:00Z")
    place.claimer.wake()
    wait_until(lambda: place.begun)
    ((_, run),) = place.begun
    assert run.stop_reason is StopReason.CANCELLED


@pytest.mark.parametrize("error", [OperationalError("away"), RuntimeError("a fault of ours")])
def test_a_claim_that_fails_is_made_again_by_the_next_call(place: Place, error: Exception) -> None:
    public_id = queue("hello")
    failed = threading.Event()

    def fail(**arguments: Any) -> list[Response]:
        failed.set()
        raise error

    with patch.object(claiming, "claim_responses", fail):
        place.claimer.wake()
        assert failed.wait(10)
    place.claimer.wake()
    wait_until(lambda: place.ids == [public_id])
