"""Carries chunks from the engines to their runs."""

import queue
import threading
import time

import structlog

from inference.types import Chunk, Finish
from responses_api import bus
from responses_api.counting import ACCEPTED_TOKENS, DRAFTED_TOKENS, count
from responses_api.interruptions import StopReason
from responses_api.worker.generation.run import Run

from .finisher import Finisher
from .run_table import RunTable
from .scheduler import Scheduler

log = structlog.get_logger(__name__)

CHUNK_LISTS = 1000
REST = 30.0
"""How long the pump rests after a pass, in proportion to the pass."""
PASS_SECONDS = 0.016
"""The pump rests no longer than until so long after the pass began: a frame of most screens."""


class ChunkQueue:
    """The chunks of all engines, in order. Bounded: an engine that is faster than the pump has to wait."""

    def __init__(self) -> None:
        self._lists: queue.Queue[list[Chunk] | None] = queue.Queue(CHUNK_LISTS)
        self._is_closed = False

    def put(self, chunks: list[Chunk]) -> None:
        """Add chunks. Any thread may call."""
        self._lists.put(chunks)

    def close(self) -> None:
        """No more chunks will come."""
        self._lists.put(None)

    def take(self) -> list[Chunk] | None:
        """All waiting chunks, at least one; ``None`` when no more will come. Called by one thread."""
        if self._is_closed:
            return None
        chunks: list[Chunk] = []
        more = self._lists.get()
        for _ in range(CHUNK_LISTS):  # an engine that keeps adding chunks must not delay these
            if more is None:
                self._is_closed = True
                return chunks or None
            chunks += more
            try:
                more = self._lists.get_nowait()
            except queue.Empty:
                return chunks
        return chunks + more if more is not None else chunks


_End = tuple[Run, Finish, str, bool]
"""A run whose sequence has ended: how, with which error, and whether it was preempted."""


class Pump:
    """One thread that feeds runs. All waiting chunks of a run are fed together, and give one delta.

    After a pass it rests in proportion: on a busy server fewer events carry more tokens each, and engines get the
    interpreter and the cores meanwhile. A token that comes ``PASS_SECONDS`` after others, or alone, is passed on at
    once.
    """

    def __init__(self, *, chunks: ChunkQueue, table: RunTable, scheduler: Scheduler, finisher: Finisher) -> None:
        self._chunks = chunks
        self._table = table
        self._scheduler = scheduler
        self._finisher = finisher
        self._thread = threading.Thread(target=self._run, name="worker-pump", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Feed the waiting chunks, and end the thread."""
        self._chunks.close()
        self._thread.join(timeout)

    def _run(self) -> None:
        while (chunks := self._chunks.take()) is not None:
            began = time.perf_counter()
            self._pass_on(chunks)
            seconds = time.perf_counter() - began
            time.sleep(max(0.0, min(REST * seconds, PASS_SECONDS - seconds)))

    def _pass_on(self, chunks: list[Chunk]) -> None:
        with bus.together():
            ended = self._feed_all(chunks)
        # Only now, since the end must not be published before the events in front of it.
        for run, finish, error, is_preempted in ended:
            self._finisher.finish(run, finish, error=error, is_preempted=is_preempted)

    def _feed_all(self, chunks: list[Chunk]) -> list[_End]:
        """Feed the runs; returns those whose sequences have ended."""
        ended: list[_End] = []
        grouped: dict[str, list[Chunk]] = {}
        for chunk in chunks:
            if chunk.drafted_tokens:  # also of compactions, and of runs that nobody waits for any more
                count(DRAFTED_TOKENS, chunk.drafted_tokens)
                count(ACCEPTED_TOKENS, chunk.accepted_tokens)
            grouped.setdefault(chunk.request_id, []).append(chunk)
        for sequence_id, batch in grouped.items():
            run = self._table.of_sequence(sequence_id)
            if run is None:
                continue
            finish = self._feed(run, sequence_id, batch)
            if finish is not None:
                ended.append((run, finish, batch[-1].error, self._table.close_sequence(sequence_id)))
            elif run.is_to_stop():
                self._scheduler.cancel(run)
        return ended

    def _feed(self, run: Run, sequence_id: str, batch: list[Chunk]) -> Finish | None:
        if any(chunk.started for chunk in batch):
            self._table.note_started(sequence_id)
        try:
            return run.feed(batch)
        except Exception:  # one response must not stop the others
            log.exception("worker.feed_failed", response=run.lease.public_id)
            run.stop(StopReason.ERROR)
            return "error" if batch[-1].finish is not None else None
