"""Chunks are delivered to their runs in order and in batches, and one run's error affects no other."""

import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest

from inference.types import Chunk
from responses_api.counting import ACCEPTED_TOKENS, DRAFTED_TOKENS, take_counts
from responses_api.interruptions import StopReason
from responses_api.worker.runtime.finisher import Finisher
from responses_api.worker.runtime.pump import CHUNK_LISTS, ChunkQueue, Pump
from responses_api.worker.runtime.run_table import RunTable
from tests.worker.rows import wait_until

from .fakes import FakeRun, FakeScheduler


def chunk(run: FakeRun, text: str = "", **fields: Any) -> Chunk:
    return Chunk(request_id=run.sequence_id, text=text, **fields)


def test_all_chunks_that_wait_are_taken_together() -> None:
    """In their order; after the last, None."""
    chunks = ChunkQueue()
    made = [chunk(FakeRun(row=number)) for number in range(4)]
    chunks.put(made[:2])
    chunks.put(made[2:3])
    assert chunks.take() == made[:3]
    chunks.put(made[3:])
    chunks.close()
    assert chunks.take() == made[3:]
    assert chunks.take() is None


def test_an_engine_that_is_too_fast_waits() -> None:
    """The queue before the pump is bounded."""
    chunks = ChunkQueue()
    for _ in range(CHUNK_LISTS):
        chunks.put([chunk(FakeRun())])
    waiting = threading.Thread(target=chunks.put, args=([chunk(FakeRun())],))
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    assert len(chunks.take() or []) >= CHUNK_LISTS
    waiting.join(10)
    assert not waiting.is_alive()


class FakeFinisher:
    """A fake finisher."""

    def __init__(self) -> None:
        self.ends: list[tuple[Any, str, str, bool]] = []

    def finish(self, run: Any, finish: str, *, error: str, is_preempted: bool) -> None:
        self.ends.append((run, finish, error, is_preempted))


class Harness:
    """A pump with fake surroundings."""

    def __init__(self) -> None:
        self.chunks = ChunkQueue()
        self.table = RunTable(removed=lambda run: None)
        self.scheduler = FakeScheduler()
        self.finisher = FakeFinisher()
        self.pump = Pump(
            chunks=self.chunks,
            table=self.table,
            scheduler=self.scheduler.scheduler,
            finisher=cast("Finisher", self.finisher),
        )

    def open(self, run: FakeRun) -> FakeRun:
        self.table.add(run.typed)
        self.table.open_sequence(run.typed)
        return run


@pytest.fixture
def harness() -> Iterator[Harness]:
    harness = Harness()
    yield harness
    harness.pump.stop(10)


def test_each_run_gets_its_chunks_in_order(harness: Harness) -> None:
    """Its end goes to the finisher once, when its sequence is closed."""
    one, two = harness.open(FakeRun(row=1)), harness.open(FakeRun(row=2))
    harness.chunks.put([chunk(one, "a", started=True), chunk(two, "b"), chunk(one, "c")])
    harness.chunks.put([chunk(one, "d", finish="error", error="So it is."), chunk(FakeRun(row=3), "nobody's")])
    harness.pump.start()
    wait_until(lambda: harness.finisher.ends)
    assert [part.text for part in one.fed] == ["a", "c", "d"]
    assert [part.text for part in two.fed] == ["b"]
    assert harness.finisher.ends == [(one, "error", "So it is.", False)]
    assert harness.table.of_sequence(one.sequence_id) is None


def test_guessed_tokens_are_counted_whoever_they_were_for(harness: Harness) -> None:
    take_counts()
    run = harness.open(FakeRun(row=1))
    harness.chunks.put([chunk(run, finish="stop", drafted_tokens=9, accepted_tokens=7)])
    harness.chunks.put([chunk(FakeRun(row=2), finish="cancelled", drafted_tokens=3, accepted_tokens=0)])
    harness.pump.start()
    harness.pump.stop(10)
    counts = take_counts()
    assert (counts[DRAFTED_TOKENS.name], counts[ACCEPTED_TOKENS.name]) == (12, 7)


def test_a_job_that_has_started_can_be_preempted(harness: Harness) -> None:
    """Its end says that it was preempted."""
    job = harness.open(FakeRun(is_job=True))
    harness.pump.start()
    harness.chunks.put([chunk(job, started=True)])
    wait_until(lambda: harness.table.preempt(job.model) == job.sequence_id)
    harness.chunks.put([chunk(job, finish="cancelled")])
    wait_until(lambda: harness.finisher.ends)
    assert harness.finisher.ends == [(job, "cancelled", "", True)]


def test_a_run_that_cannot_be_fed_is_stopped_and_others_continue(harness: Harness) -> None:
    bad, good = harness.open(FakeRun(row=1, fails=True)), harness.open(FakeRun(row=2))
    harness.pump.start()
    harness.chunks.put([chunk(bad, "a"), chunk(good, "b")])
    wait_until(lambda: good.fed and harness.scheduler.cancelled == [bad])
    assert bad.stop_reason is StopReason.ERROR
    harness.chunks.put([chunk(bad, finish="cancelled")])
    wait_until(lambda: harness.finisher.ends == [(bad, "error", "", False)])


def test_a_stopped_run_is_cancelled_again(harness: Harness) -> None:
    """It may have been stopped before its engine knew it."""
    run = harness.open(FakeRun(stop_reason=StopReason.TOO_LARGE))
    harness.pump.start()
    harness.chunks.put([chunk(run, "a")])
    wait_until(lambda: harness.scheduler.cancelled == [run])
