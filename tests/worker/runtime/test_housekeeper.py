"""Housekeeping: the runs of a worker are stopped when the database says so, until it holds none."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, cast
from unittest.mock import Mock

import pytest
from django.db.models.functions import Now

from inference.types import EngineLoad
from responses_api.interruptions import StopReason
from responses_api.models import Process, Response
from responses_api.services.jobs.leases import claim_responses
from responses_api.services.processes.announce_process import Announcement, announce_process
from responses_api.worker.runtime.ended_streams import EndedStreams
from responses_api.worker.runtime.hosted_models import ModelHost
from responses_api.worker.runtime.housekeeper import Housekeeper
from responses_api.worker.runtime.run_table import RunTable
from tests.turns import ApiUser
from tests.worker.rows import queue, wait_until

from .fakes import MODEL, FakeRun, FakeScheduler

pytestmark = pytest.mark.django_db(transaction=True)


class Place:
    """A housekeeper and what surrounds it."""

    def __init__(self) -> None:
        user = ApiUser.make()
        self.table = RunTable(removed=lambda run: None)
        self.scheduler = FakeScheduler()
        self.woken: list[bool] = []
        self.ended = Mock(spec=EndedStreams)
        self.host = Mock(spec=ModelHost)
        model = Mock(load=lambda: EngineLoad(running=1, waiting=2, slots=4, free=1, cache_bytes=0))
        self.host.__iter__ = Mock(side_effect=lambda: iter([model]))
        self.host.scan.return_value = False
        self.host.announcements = list(Process.objects.get(pk=user.worker).served_models)
        self.housekeeper = Housekeeper(
            worker="worker_1",
            table=self.table,
            scheduler=self.scheduler.scheduler,
            wake=lambda *, background: self.woken.append(background),
            ended=cast("EndedStreams", self.ended),
            host=cast("ModelHost", self.host),
        )

    def claimed(self, *, background: bool = False) -> FakeRun:
        """A run of a row that the worker holds."""
        queue("hello", background=background)
        (row,) = claim_responses(worker="worker_1", models=[MODEL], limit=1, background=background)
        run = FakeRun(row=row.pk, attempt=row.attempt, is_job=background)
        self.table.add(run.typed)
        return run


@pytest.fixture
def place(settings: Any) -> Iterator[Place]:
    settings.RESPONSES_LEASE_SECONDS, settings.RESPONSES_BACKGROUND_TIMEOUT_SECONDS = 1.0, 3600.0
    place = Place()
    announce_process(Announcement(id="web_1", kind=Process.Kind.WEB))
    Process.objects.filter(pk="web_1").update(heartbeat_at=Now() + timedelta(hours=1))
    yield place
    place.housekeeper.stop(10)


def test_leases_are_renewed_and_the_worker_announced(place: Place) -> None:
    """For as long as it runs, also when it takes no more work."""
    run = place.claimed()
    place.housekeeper.start()
    announced = Process.objects.get(pk="worker_1")
    assert (announced.slots, announced.running, announced.waiting) == (4, 1, 2)
    place.housekeeper.stop_chores()
    before = Response.objects.get(pk=run.row).lease_until
    assert before is not None
    held = Response.objects.filter(pk=run.row, lease_until__gt=before + timedelta(seconds=1))
    wait_until(held.exists)
    assert not run.is_to_stop()


def lose(run: FakeRun) -> None:
    Response.objects.filter(pk=run.row).update(attempt=run.attempt + 1, worker="worker_2")


def request_cancellation(run: FakeRun) -> None:
    Response.objects.filter(pk=run.row).update(cancel_requested_at=Now())


def make_overdue(run: FakeRun) -> None:
    Response.objects.filter(pk=run.row).update(created_at=Now() - timedelta(days=30))


def lose_reader(run: FakeRun) -> None:
    Process.objects.filter(pk="web_1").delete()
    Response.objects.filter(pk=run.row).update(created_at=Now() - timedelta(seconds=2))


@pytest.mark.parametrize(
    ("change", "background", "reason"),
    [
        (lose, False, StopReason.LOST),
        (lose, True, StopReason.LOST),
        (request_cancellation, False, StopReason.LEFT),
        (request_cancellation, True, StopReason.CANCELLED),
        (make_overdue, True, StopReason.TIMEOUT),
        (lose_reader, False, StopReason.LEFT),
    ],
)
def test_a_run_is_stopped_for_what_its_row_says(
    place: Place, change: Callable[[FakeRun], None], reason: StopReason, *, background: bool
) -> None:
    run, other = place.claimed(background=background), place.claimed(background=True)
    change(run)
    place.housekeeper.start()
    wait_until(run.is_to_stop)
    assert run.stop_reason is reason
    assert not other.is_to_stop()


def test_what_may_be_left_to_others_is_done_until_the_worker_takes_no_more_work(place: Place) -> None:
    """It looks for jobs, and for models; what has ended is forgotten to the last."""
    place.housekeeper.start()
    wait_until(lambda: True in place.woken and place.host.scan.called and place.ended.forget_old.called)
    place.housekeeper.stop_chores()
    wait_until(lambda: _settled(place))
    forgotten = place.ended.forget_old.call_count
    woken = len(place.woken)
    wait_until(lambda: place.ended.forget_old.call_count > forgotten + 1)
    assert len(place.woken) == woken


def _settled(place: Place) -> bool:
    """Whether no chore that was under way when the chores were stopped is still at work."""
    before, forgotten = len(place.woken), place.ended.forget_old.call_count
    wait_until(lambda: place.ended.forget_old.call_count > forgotten)
    return len(place.woken) == before
