"""Writes the event logs of all jobs of this worker, on one thread, in one transaction for all collected entries."""

import threading
import time
from collections.abc import Callable, Sequence

import structlog
from django.db import InterfaceError, OperationalError

from inference.types import Chunk
from responses_api.database.threads import with_fresh_connection
from responses_api.models import EventBatch
from responses_api.services.jobs.event_log import Flush, LogCursor, append_batches
from responses_api.services.jobs.leases import Lease
from responses_api.streaming import EncodedEvent

log = structlog.get_logger(__name__)

COLLECT_SECONDS = 0.02
RETRY_SECONDS = 0.5
UNWRITTEN_BYTES = 8 << 20
"""Most bytes of one job that wait for the database; if there are more, they are generated again later."""
ENTRY_BYTES = 64
TOP_ENTRIES = 20


class JobLog:
    """One job's log: its entries are written in order, and published only then."""

    def __init__(self, lease: Lease, cursor: LogCursor, writer: "LogWriter") -> None:
        self.lease = lease
        self.cursor = cursor
        self._writer = writer
        self._events: list[EncodedEvent] = []
        self._feeds: list[Sequence[Chunk]] = []
        self._unwritten: list[tuple[EventBatch, list[EncodedEvent]]] = []
        self.is_lost = False
        """Another worker owns the job or has to claim it: nothing more is written."""
        self._size = 0
        """Bytes of unwritten entries."""

    def add(self, events: Sequence[EncodedEvent], chunks: Sequence[Chunk]) -> None:
        """Write these entries soon."""
        self._writer.add(self, events, chunks)

    def drain(self) -> bool:
        """Wait until everything is written; False when the job is lost."""
        return self._writer.drain(self)

    def batch(self, events: Sequence[EncodedEvent]) -> EventBatch:
        """The next batch, to be stored by the caller. No entries may be waiting to be written."""
        return self.cursor.batch(events, response=self.lease.response, attempt=self.lease.attempt)

    # Called by the writer, under its lock

    def _collect(self, events: Sequence[EncodedEvent], chunks: Sequence[Chunk]) -> None:
        self._events += events
        self._feeds.append(chunks)
        self._size += size_of(events, [chunks])

    def _give_up(self) -> None:
        self.is_lost = True
        self._events, self._feeds = [], []

    def _take(self) -> None:
        if not self._events and not self._feeds:
            return
        batch = self.cursor.batch(
            self._events, response=self.lease.response, attempt=self.lease.attempt, feeds=self._feeds
        )
        self._unwritten.append((batch, self._events))
        self._events, self._feeds = [], []


def size_of(events: Sequence[EncodedEvent], feeds: Sequence[Sequence[Chunk]]) -> int:
    """The approximate size in memory, in bytes."""
    entries = sum(1 + len(chunk.tokens) + TOP_ENTRIES * len(chunk.logprobs) for feed in feeds for chunk in feed)
    return sum(len(text) for _, text in events) + ENTRY_BYTES * entries


Written = Callable[[Lease, int, list[EncodedEvent]], None]


class LogWriter:
    """Calls ``written`` with a job's lease, the number of the first event, and the events, once they are persisted.

    Calls ``lost`` with a lease that was lost. Both are called on the writer's thread.
    """

    def __init__(self, *, written: Written, lost: Callable[[Lease], None]) -> None:
        self._written = written
        self._lost = lost
        self._changed = threading.Condition()
        self._waiting: set[JobLog] = set()
        self._writing: set[JobLog] = set()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="worker-log-writer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Write what is waiting, and end the thread."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._thread.join(timeout)

    def add(self, job: JobLog, events: Sequence[EncodedEvent], chunks: Sequence[Chunk]) -> None:
        """Write events and chunks of a job soon."""
        with self._changed:
            if job.is_lost:
                return
            job._collect(events, chunks)
            is_too_much = job._size > UNWRITTEN_BYTES
            if is_too_much:
                job._give_up()
            self._waiting.add(job)
            self._changed.notify_all()
        if is_too_much:
            # The database has been unavailable for long. The worker that claims the job later resumes from its log.
            log.warning("log_writer.job_given_up", response=job.lease.public_id)
            self._lost(job.lease)

    def drain(self, job: JobLog) -> bool:
        """Wait until everything of a job is written. False when the job was lost, or the writer stopped before."""
        with self._changed:
            self._changed.wait_for(lambda: not self._has(job) or not self._thread.is_alive())
            return not job.is_lost and not self._has(job)

    def _has(self, job: JobLog) -> bool:
        return job in self._waiting or job in self._writing

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waiting) or self._stopping)
                if not self._waiting:
                    return
            time.sleep(COLLECT_SECONDS)
            with self._changed:
                self._writing, self._waiting = self._waiting, set()
                for job in self._writing:
                    job._take()
            self._write(list(self._writing))
            with self._changed:
                self._writing = set()
                self._changed.notify_all()

    def _write(self, jobs: list[JobLog]) -> None:
        flushes = [Flush(job.lease, [batch for batch, _ in job._unwritten]) for job in jobs if job._unwritten]
        lost = self._append(flushes)
        for job in jobs:
            unwritten, job._unwritten = job._unwritten, []
            with self._changed:
                job._size = size_of(job._events, job._feeds)
            if job.lease in lost:
                job.is_lost = True
                self._lost(job.lease)
                continue
            for batch, events in unwritten:
                if events:
                    self._written(job.lease, batch.first, events)

    def _append(self, flushes: list[Flush]) -> set[Lease]:
        """Write these, with retries while the database is unavailable; returns the leases of those that can't be
        written.
        """
        while True:
            try:
                return with_fresh_connection(append_batches, flushes)
            except (OperationalError, InterfaceError) as error:
                log.warning("log_writer.database_unavailable", error=str(error))
                if self._stopping:
                    # The worker that claims the job generates the unwritten tokens again.
                    return {flush.lease for flush in flushes}
                time.sleep(RETRY_SECONDS)
            except Exception:  # the thread writes for all jobs and must not end
                if len(flushes) > 1:
                    # One of them can't be written, and must not affect the others.
                    return {lease for flush in flushes for lease in self._append([flush])}
                log.exception("log_writer.failed", response=flushes[0].lease.public_id)
                return {flush.lease for flush in flushes}
