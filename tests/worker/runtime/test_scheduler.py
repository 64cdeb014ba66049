"""Submitting, preempting and stopping: every sequence ends with a chunk."""

from typing import Any

import pytest

from inference.types import Chunk
from responses_api.interruptions import StopReason
from responses_api.worker.runtime.run_table import RunTable
from responses_api.worker.runtime.scheduler import Scheduler

from .fakes import FakeHost, FakeRun

REQUEST: Any = object()


class Harness:
    """A scheduler with fake surroundings."""

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
def harness() -> Harness:
    return Harness()


def test_a_run_is_given_to_its_engine(harness: Harness) -> None:
    """From then on its chunks can be assigned to it."""
    run = harness.submit(FakeRun())
    assert harness.engine.submitted == [REQUEST]
    assert harness.table.of_sequence(run.sequence_id) is run.typed
    assert not harness.chunks


def test_without_tokens_to_generate_the_sequence_ends_at_once(harness: Harness) -> None:
    run = harness.submit(FakeRun(), None)
    assert harness.chunks == [Chunk(request_id=run.sequence_id, finish="stop")]


def test_a_stopped_run_is_not_submitted(harness: Harness) -> None:
    run = harness.submit(FakeRun(stop_reason=StopReason.LEFT))
    assert not harness.engine.submitted
    assert harness.chunks == [Chunk(request_id=run.sequence_id, finish="cancelled")]


def test_a_run_that_is_stopped_during_submission_is_cancelled(harness: Harness) -> None:
    """Its stop came before the engine knew it."""
    run = FakeRun()
    harness.engine.on_submit = lambda: run.stop(StopReason.CANCELLED)
    harness.submit(run)
    assert harness.engine.cancelled == [run.sequence_id]


def test_an_engine_that_has_stopped_ends_the_sequence_with_an_error(harness: Harness) -> None:
    harness.engine.is_gone = True
    run = harness.submit(FakeRun())
    assert harness.chunks == [Chunk(request_id=run.sequence_id, finish="error")]


def test_an_interactive_request_preempts_a_job_of_a_full_engine(harness: Harness) -> None:
    """A job does not, and with a free slot nothing is preempted."""
    job = harness.submit(FakeRun(row=1, is_job=True))
    harness.table.note_started(job.sequence_id)
    harness.submit(FakeRun(row=2))
    assert not harness.engine.cancelled
    harness.engine.running = harness.engine.slots
    harness.submit(FakeRun(row=3, is_job=True))
    assert not harness.engine.cancelled
    harness.submit(FakeRun(row=4))
    assert harness.engine.cancelled == [job.sequence_id]
    assert harness.table.close_sequence(job.sequence_id)


def test_a_run_is_stopped_for_the_first_reason(harness: Harness) -> None:
    """The engine is told each time, as it may not have known the sequence before."""
    run = harness.submit(FakeRun())
    harness.scheduler.stop(run.typed, StopReason.TIMEOUT)
    harness.scheduler.stop(run.typed, StopReason.SHUTDOWN)
    assert run.stop_reason is StopReason.TIMEOUT
    assert harness.engine.cancelled == [run.sequence_id] * 2


def test_a_run_without_an_engine_is_only_told_to_stop(harness: Harness) -> None:
    run = FakeRun()
    harness.scheduler.stop(run.typed, StopReason.LEFT)
    assert run.is_to_stop()
    assert not harness.engine.cancelled
