"""The table of runs: the runs of a worker, and which job is preempted."""

from typing import Any

import pytest

from responses_api.interruptions import StopReason
from responses_api.worker.runtime.run_table import RunTable

from .fakes import FakeRun


@pytest.fixture
def removed() -> list[Any]:
    return []


@pytest.fixture
def table(removed: list[Any]) -> RunTable:
    return RunTable(removed=removed.append)


def add(table: RunTable, run: FakeRun, *, started: bool = True) -> FakeRun:
    """Add a run with a sequence in an engine."""
    table.add(run.typed)
    table.open_sequence(run.typed)
    if started:
        table.note_started(run.sequence_id)
    return run


def test_a_run_is_found_by_row_response_and_sequence(table: RunTable, removed: list[Any]) -> None:
    """Until it is removed, which is reported afterwards."""
    run, other = add(table, FakeRun(row=1)), add(table, FakeRun(row=2, model="other"))
    assert table.of_row(1) is table.of_response("resp_1") is table.of_sequence("resp_1.1") is run.typed
    assert (table.count(), table.count("other"), table.count("third")) == (2, 1, 0)
    table.remove(run.typed)
    assert table.of_row(1) is table.of_response("resp_1") is table.of_sequence("resp_1.1") is None
    assert table.live() == [other.typed]
    assert removed == [run]


def test_a_run_replaces_the_earlier_attempt_on_its_row(table: RunTable) -> None:
    """The end of the earlier one does not remove the later one."""
    earlier, later = FakeRun(row=1, attempt=1), FakeRun(row=1, attempt=2)
    assert table.add(earlier.typed) is None
    assert table.add(later.typed) is earlier.typed
    table.remove(earlier.typed)
    assert table.live() == [later.typed]


def test_the_job_that_got_its_slot_last_is_preempted(table: RunTable) -> None:
    """Each once; none that waits in the engine, is compacting, is stopping, or belongs to another model."""
    first, second = (add(table, FakeRun(row=row, is_job=True)) for row in (1, 2))
    add(table, FakeRun(row=3))
    add(table, FakeRun(row=4, is_job=True), started=False)
    add(table, FakeRun(row=5, is_job=True, is_compacting=True))
    add(table, FakeRun(row=6, is_job=True, model="other"))
    add(table, FakeRun(row=7, is_job=True, stop_reason=StopReason.CANCELLED))
    assert [table.preempt("scripted") for _ in range(3)] == [second.sequence_id, first.sequence_id, None]


def test_a_sequence_that_ends_says_whether_it_was_preempted(table: RunTable) -> None:
    """Afterwards the sequence is unknown; its run is not."""
    job, other = (add(table, FakeRun(row=row, is_job=True)) for row in (1, 2))
    table.preempt("scripted")
    assert table.close_sequence(other.sequence_id)
    assert not table.close_sequence(other.sequence_id)
    assert not table.close_sequence(job.sequence_id)
    assert table.of_sequence(job.sequence_id) is None
    assert table.live() == [job.typed, other.typed]
