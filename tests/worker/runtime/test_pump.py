"""Chunks on their way to the runs: in order, together, and one run's fault is nobody else's."""

import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest

from inference.types import Chunk
from responses_api.interruptions import StopReason
from responses_api.worker.runtime.finisher import Finisher
from responses_api.worker.runtime.pump import CHUNK_LISTS, ChunkQueue, Pump
from responses_api.worker.runtime.run_table import RunTable
from tests.worker.rows import wait_until

from .fakes import FakeRun, FakeScheduler


def chunk(run: FakeRun, text: str = "", **fields: Any) -> Chunk:
    return Chunk(request_id=run.sequence_id, text=text, **fields)


def test_all_chunks_that_wait_are_taken_together() -> None:
    """In the order in which they came; after the last, None."""
    chunks = ChunkQueue()
    made = [chunk(FakeRun(row=number)) for number in range(4)]
    chunks.put(made[:2])
    chunks.put(made[2:3])
    assert chunks.take() == made[:3]
    chunks.put(made[3:])
    chunks.close()
    assert chunks.take() == made[3:]
    assert chunks.take() is None


def test_an_engine_that_is_too_quick_waits() -> None:
    """What waits for the pump is bounded."""
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


class Ends:
    """In the place of a finisher."""

    def __init__(self) -> None:
        self.ends: list[tuple[Any, str, str, bool]] = []

    def finish(self, run: Any, finish: str, *, error: str, is_preempted: bool) -> None:
        self.ends.append((run, finish, error, is_preempted))


class Place:
    """A pump and what surrounds it."""

    def __init__(self) -> None:
        self.chunks = ChunkQueue()
        self.table = RunTable(removed=lambda run: None)
        self.scheduler = FakeScheduler()
        self.finisher = Ends()
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
def place() -> Iterator[Place]:
    place = Place()
    yield place
    place.pump.stop(10)


def test_each_run_gets_its_chunks_in_order(place: Place) -> None:
    """And its end goes to the finisher, once, when its sequence is closed."""
    one, two = place.open(FakeRun(row=1)), place.open(FakeRun(row=2))
    place.chunks.put([chunk(one, "a", started=True), chunk(two, "b"), chunk(one, "c")])
    place.chunks.put([chunk(one, "d", finish="error", error="So it is."), chunk(FakeRun(row=3), "nobody's")])
    place.pump.start()
    wait_until(lambda: place.finisher.ends)
    assert [part.text for part in one.fed] == ["a", "c", "d"]
    assert [part.text for part in two.fed] == ["b"]
    assert place.finisher.ends == [(one, "error", "So it is.", False)]
    assert place.table.of_sequence(one.sequence_id) is None


def test_a_job_that_has_started_can_be_preempted(place: Place) -> None:
    """Its end says that it was."""
    job = place.open(FakeRun(is_job=True))
    place.pump.start()
    place.chunks.put([chunk(job, started=True)])
    wait_until(lambda: place.table.preempt(job.model) == job.sequence_id)
    place.chunks.put([chunk(job, finish="cancelled")])
    wait_until(lambda: place.finisher.ends)
    assert place.finisher.ends == [(job, "cancelled", "", True)]


def test_a_run_that_can_not_be_fed_is_stopped_and_others_go_on(place: Place) -> None:
    bad, good = place.open(FakeRun(row=1, fails=True)), place.open(FakeRun(row=2))
    place.pump.start()
    place.chunks.put([chunk(bad, "a"), chunk(good, "b")])
    wait_until(lambda: good.fed and place.scheduler.cancelled == [bad])
    assert bad.stop_reason is StopReason.ERROR
    place.chunks.put([chunk(bad, finish="cancelled")])
    wait_until(lambda: place.finisher.ends == [(bad, "error", "", False)])


def test_a_run_that_is_to_stop_is_cancelled_again(place: Place) -> None:
    """It may have been stopped by itself, or when no engine knew it."""
    run = place.open(FakeRun(stop_reason=StopReason.TOO_LARGE))
    place.pump.start()
    place.chunks.put([chunk(run, "a")])
    wait_until(lambda: place.scheduler.cancelled == [run])
