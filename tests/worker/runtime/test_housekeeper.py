"""Housekeeping: the runs of a worker are stopped when the database says so, until it owns none."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, cast
from unittest.mock import Mock

import pytest
from django.db.models.functions import Now

from inference.types import CacheFigures, EngineLoad
from responses_api.counting import PROMPT_CACHE_HITS, series
from responses_api.interruptions import StopReason
from responses_api.models import Counter, Process, Response
from responses_api.services.accounts.authenticate import default_project
from responses_api.services.accounts.create_key import create_key
from responses_api.services.jobs.leases import claim_responses
from responses_api.services.processes.announce_process import Announcement, announce_process
from responses_api.services.processes.publish_counts import publish_counts
from responses_api.worker.hosting import ModelHost
from responses_api.worker.runtime.ended_streams import EndedStreams
from responses_api.worker.runtime.housekeeper import Housekeeper
from responses_api.worker.runtime.run_table import RunTable
from tests.turns import ApiUser
from tests.worker.rows import queue, wait_until

from .fakes import MODEL, FakeRun, FakeScheduler

pytestmark = pytest.mark.django_db(transaction=True)


class Harness:
    """A housekeeper with fake surroundings."""

    def __init__(self) -> None:
        user = ApiUser.make()
        self.table = RunTable(removed=lambda run: None)
        self.scheduler = FakeScheduler()
        self.woken: list[bool] = []
        self.ended = Mock(spec=EndedStreams)
        self.host = Mock(spec=ModelHost)
        figures = CacheFigures(hits=3, nbytes=7)
        load = EngineLoad(running=1, waiting=2, slots=4, free=1, memory_cache=figures, disk_cache=figures)
        self.model = model = Mock(refusal="", load=lambda: load)
        model.name = "m"
        model.engine.holders.return_value = set()
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
        """A run of a row that the worker owns."""
        queue("hello", background=background)
        (row,) = claim_responses(worker="worker_1", models=[MODEL], limit=1, background=background)
        run = FakeRun(row=row.pk, attempt=row.attempt, is_job=background)
        self.table.add(run.typed)
        return run


@pytest.fixture
def harness(settings: Any) -> Iterator[Harness]:
    settings.RESPONSES_LEASE_SECONDS, settings.RESPONSES_BACKGROUND_TIMEOUT_SECONDS = 1.0, 3600.0
    harness = Harness()
    announce_process(Announcement(id="web_1", kind=Process.Kind.WEB))
    Process.objects.filter(pk="web_1").update(heartbeat_at=Now() + timedelta(hours=1))
    yield harness
    harness.housekeeper.stop(10)


def test_leases_are_renewed_and_the_worker_announced(harness: Harness) -> None:
    """As long as it runs, even when it accepts no more work."""
    run = harness.claimed()
    harness.housekeeper.start()
    announced = Process.objects.get(pk="worker_1")
    assert (announced.slots, announced.running, announced.waiting) == (4, 1, 2)
    harness.housekeeper.stop_chores()
    before = Response.objects.get(pk=run.row).lease_until
    assert before is not None
    renewed = Response.objects.filter(pk=run.row, lease_until__gt=before + timedelta(seconds=1))
    wait_until(renewed.exists)
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
def test_a_run_is_stopped_for_the_reason_in_its_row(
    harness: Harness, change: Callable[[FakeRun], None], reason: StopReason, *, background: bool
) -> None:
    run, other = harness.claimed(background=background), harness.claimed(background=True)
    change(run)
    harness.housekeeper.start()
    wait_until(run.is_to_stop)
    assert run.stop_reason is reason
    assert not other.is_to_stop()


def test_chores_are_done_until_the_worker_accepts_no_more_work(harness: Harness) -> None:
    """It looks for jobs and models until then; ended runs are forgotten until the stop."""
    harness.housekeeper.start()
    wait_until(lambda: True in harness.woken and harness.host.scan.called and harness.ended.forget_old.called)
    harness.housekeeper.stop_chores()
    wait_until(lambda: _settled(harness))
    forgotten = harness.ended.forget_old.call_count
    woken = len(harness.woken)
    wait_until(lambda: harness.ended.forget_old.call_count > forgotten + 1)
    assert len(harness.woken) == woken


def _settled(harness: Harness) -> bool:
    """Whether no chore from before the stop is still running."""
    before, forgotten = len(harness.woken), harness.ended.forget_old.call_count
    wait_until(lambda: harness.ended.forget_old.call_count > forgotten)
    return len(harness.woken) == before


def test_caches_of_owners_that_are_gone_are_dropped(harness: Harness, settings: Any) -> None:
    """A worker need not have heard of it; the caches of all that exist stay, by project and by key."""
    settings.RESPONSES_ISOLATION = "key"
    key = create_key(project=default_project(), name="laptop")[0]
    harness.housekeeper._retain_caches()
    harness.model.engine.retain.assert_called_once_with(frozenset({f"project-{default_project().pk}", f"key-{key.pk}"}))


def test_caches_of_responses_that_are_gone_are_dropped(harness: Harness) -> None:
    """As of those that have expired; those of running ones stay."""
    harness.model.engine.holders.return_value = {queue("hello"), "resp_gone"}
    harness.housekeeper._retain_caches()
    harness.model.engine.release.assert_called_once_with({"resp_gone"})


def test_caches_are_announced_and_counted_to_the_end(harness: Harness) -> None:
    harness.housekeeper.start()
    announced = Process.objects.get(pk="worker_1")
    assert (announced.prompt_cache_bytes, announced.prompt_cache_disk_bytes) == (7, 7)
    harness.housekeeper.stop(10)
    publish_counts()
    hits = series(PROMPT_CACHE_HITS.name, tier="disk")
    assert Counter.objects.get(name=hits).value == 3
