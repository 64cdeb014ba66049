"""The end of a sequence: its result in each case, and always a free slot."""

from collections.abc import Iterator
from typing import Any, cast
from unittest.mock import Mock

import pytest

from inference.types import Finish
from responses_api.errors import ServerError
from responses_api.interruptions import StopReason
from responses_api.worker.generation.run import Run
from responses_api.worker.runtime.finisher import Finisher
from responses_api.worker.runtime.preparer import Preparer
from responses_api.worker.runtime.run_table import RunTable

from .fakes import FakeScheduler

pytestmark = pytest.mark.django_db


class Harness:
    """A finisher with fake surroundings."""

    def __init__(self) -> None:
        self.removed: list[Any] = []
        self.scheduler = FakeScheduler()
        self.preparer = Mock(spec=Preparer)
        self.finisher = Finisher(
            table=RunTable(removed=self.removed.append),
            scheduler=self.scheduler.scheduler,
            preparer=cast("Preparer", self.preparer),
        )

    def finish(self, run: Any, finish: Finish, *, error: str = "", is_preempted: bool = False) -> None:
        self.finisher.finish(run, finish, error=error, is_preempted=is_preempted)
        self.finisher.close()


@pytest.fixture
def harness() -> Iterator[Harness]:
    harness = Harness()
    yield harness
    harness.finisher.close()


def a_run(*, stop: StopReason | None = None, compacting: bool = False) -> Mock:
    run = Mock(spec=Run)
    run.lease, run.sequence_id, run.is_compacting = Mock(), "resp_1.1", compacting
    run.is_to_stop.return_value = stop is not None
    run.interruption.return_value = ServerError("interrupted")
    return run


def test_an_ended_answer_is_closed(harness: Harness) -> None:
    run = a_run()
    harness.finish(run, "stop")
    run.close.assert_called_once_with("stop", error="")
    assert harness.removed == [run]


def test_an_end_that_cannot_be_stored_frees_the_slot(harness: Harness) -> None:
    run = a_run()
    run.close.side_effect = RuntimeError("an unexpected error")
    harness.finish(run, "stop")
    assert harness.removed == [run]


def test_a_preempted_job_is_submitted_again(harness: Harness) -> None:
    job = a_run()
    harness.finish(job, "cancelled", is_preempted=True)
    assert harness.scheduler.submitted == [(job, job.resume.return_value)]
    assert not job.close.called
    assert not harness.removed


@pytest.mark.parametrize(("finish", "stop"), [("stop", None), ("cancelled", StopReason.CANCELLED)])
def test_a_job_that_ended_before_it_was_preempted_is_closed(
    harness: Harness, finish: Finish, stop: StopReason | None
) -> None:
    """By itself, or because it was stopped."""
    job = a_run(stop=stop)
    harness.finish(job, finish, is_preempted=True)
    job.close.assert_called_once_with(finish, error="")


def test_a_summary_is_followed_by_its_compaction(harness: Harness) -> None:
    run = a_run(compacting=True)
    harness.finish(run, "length")
    harness.preparer.compact.assert_called_once_with(run)
    assert not harness.removed


@pytest.mark.parametrize(
    ("finish", "error", "stop", "message"),
    [("error", "So it is.", None, "So it is."), ("stop", "", StopReason.LEFT, "interrupted")],
)
def test_a_summary_that_failed_refuses_the_request(
    harness: Harness, finish: Finish, error: str, stop: StopReason | None, message: str
) -> None:
    run = a_run(compacting=True, stop=stop)
    harness.finish(run, finish, error=error)
    ((refused, refusal), _) = harness.preparer.refuse.call_args
    assert refused is run
    assert refusal.message == message
