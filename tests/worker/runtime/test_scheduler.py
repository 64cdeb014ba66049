"""Submitting, preempting and stopping: each sequence ends with a chunk, whatever becomes of it."""

from typing import Any

import pytest

from inference.types import Chunk
from responses_api.interruptions import StopReason
from responses_api.worker.runtime.run_table import RunTable
from responses_api.worker.runtime.scheduler import Scheduler

from .fakes import FakeHost, FakeRun

REQUEST: Any = object()


class Place:
    """A scheduler and what surrounds it."""

    def __init__(self) -> None:
        self.host = FakeHost()
        self.engine = self.host.engine
        self.table = RunTable(removed=lambda run: None)
        self.chunks: list[Chunk] = []
        self.scheduler = Scheduler(table=self.table, host=self.host.host, sink=self.chunks.extend)

    def submit(self, run: FakeRun, request: Any = REQUEST) -> FakeRun:
        self.scheduler.submit(run.typed, request)
        return run


@pytest.fixture
def place() -> Place:
    return Place()


def test_a_run_is_given_to_its_engine(place: Place) -> None:
    """And its chunks can be told from others from then on."""
    run = place.submit(FakeRun())
    assert place.engine.submitted == [REQUEST]
    assert place.table.of_sequence(run.sequence_id) is run.typed
    assert not place.chunks


def test_where_there_is_nothing_to_generate_the_sequence_ends_at_once(place: Place) -> None:
    run = place.submit(FakeRun(), None)
    assert place.chunks == [Chunk(request_id=run.sequence_id, finish="stop")]


def test_a_run_that_was_stopped_before_is_not_submitted(place: Place) -> None:
    run = place.submit(FakeRun(stop_reason=StopReason.LEFT))
    assert not place.engine.submitted
    assert place.chunks == [Chunk(request_id=run.sequence_id, finish="cancelled")]


def test_a_run_that_is_stopped_while_it_is_submitted_is_cancelled(place: Place) -> None:
    """Its stop came when the engine did not know it."""
    run = FakeRun()
    place.engine.on_submit = lambda: run.stop(StopReason.CANCELLED)
    place.submit(run)
    assert place.engine.cancelled == [run.sequence_id]


def test_an_engine_that_has_stopped_ends_the_sequence_with_an_error(place: Place) -> None:
    place.engine.is_gone = True
    run = place.submit(FakeRun())
    assert place.chunks == [Chunk(request_id=run.sequence_id, finish="error")]


def test_an_interactive_request_preempts_a_job_of_a_full_engine(place: Place) -> None:
    """A job does not, and an engine with a free slot needs none."""
    job = place.submit(FakeRun(row=1, is_job=True))
    place.table.note_started(job.sequence_id)
    place.submit(FakeRun(row=2))
    assert not place.engine.cancelled
    place.engine.running = place.engine.slots
    place.submit(FakeRun(row=3, is_job=True))
    assert not place.engine.cancelled
    place.submit(FakeRun(row=4))
    assert place.engine.cancelled == [job.sequence_id]
    assert place.table.close_sequence(job.sequence_id)


def test_a_run_is_stopped_for_the_first_reason(place: Place) -> None:
    """The engine is told each time, for it may not have known the sequence before."""
    run = place.submit(FakeRun())
    place.scheduler.stop(run.typed, StopReason.TIMEOUT)
    place.scheduler.stop(run.typed, StopReason.SHUTDOWN)
    assert run.stop_reason is StopReason.TIMEOUT
    assert place.engine.cancelled == [run.sequence_id] * 2


def test_a_run_that_no_engine_has_is_only_told_to_stop(place: Place) -> None:
    run = FakeRun()
    place.scheduler.stop(run.typed, StopReason.LEFT)
    assert run.is_to_stop()
    assert not place.engine.cancelled
