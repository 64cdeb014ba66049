"""The worker of a process: claims rows, submits them to engines, processes their chunks, renews its leases."""

import time
from contextlib import suppress

from django.conf import settings
from django.db import Error as DatabaseError

from responses_api.database.threads import with_fresh_connection
from responses_api.ids import new_id
from responses_api.interruptions import StopReason
from responses_api.services.jobs.end_job import publish_job_events
from responses_api.services.jobs.leases import Lease
from responses_api.services.processes.announce_process import forget_process
from responses_api.streaming import EncodedEvent
from responses_api.worker.generation.run import Run
from responses_api.worker.hosting import ModelHost

from .claimer import Claimer
from .counting import Counter
from .ended_streams import EndedStreams
from .finisher import Finisher
from .housekeeper import Housekeeper
from .listener import Listener
from .log_writer import LogWriter
from .preparer import Preparer
from .pump import ChunkQueue, Pump
from .run_table import RunTable
from .scheduler import Scheduler
from .watchdog import Watchdog

SHUTDOWN_SECONDS = 10


class GenerationWorker:
    """One per process. ``chunks`` is the sink of the engines of ``host``.

    A row is claimed (:class:`Claimer`), prepared (:class:`Preparer`) and given to an engine (:class:`Scheduler`), whose
    chunks come back (:class:`Pump`) until its end is stored (:class:`Finisher`). The :class:`Listener` receives
    messages, the :class:`Housekeeper` renews leases, and the :class:`Watchdog` finds stuck engines. All of them share
    the :class:`RunTable`.
    """

    def __init__(self, host: ModelHost, chunks: ChunkQueue) -> None:
        self.id = new_id("worker_")
        self.table = RunTable(removed=self._removed)
        self.ended = EndedStreams(seconds=settings.RESPONSES_LEASE_SECONDS)
        self._host = host
        self._log_writer = LogWriter(written=self._publish, lost=self._lose)
        self._scheduler = Scheduler(table=self.table, host=host, sink=chunks.put)
        self._preparer = Preparer(table=self.table, host=host, scheduler=self._scheduler)
        self._claimer = Claimer(
            worker=self.id,
            table=self.table,
            host=host,
            scheduler=self._scheduler,
            preparer=self._preparer,
            log_writer=self._log_writer,
        )
        self._finisher = Finisher(table=self.table, scheduler=self._scheduler, preparer=self._preparer)
        self._pump = Pump(chunks=chunks, table=self.table, scheduler=self._scheduler, finisher=self._finisher)
        self._counter = Counter(host)
        self._listener = Listener(
            worker=self.id,
            table=self.table,
            scheduler=self._scheduler,
            counter=self._counter,
            ended=self.ended,
            host=host,
        )
        self._housekeeper = Housekeeper(
            worker=self.id,
            table=self.table,
            scheduler=self._scheduler,
            wake=self.wake,
            ended=self.ended,
            host=host,
        )

        self._watchdog = Watchdog(
            worker=self.id,
            table=self.table,
            host=host,
            claimer=self._claimer,
            scheduler=self._scheduler,
            sink=chunks.put,
        )

    def start(self) -> None:
        """Announce the models, start the threads and claim waiting work. The default model has been loaded before."""
        self._log_writer.start()
        self._pump.start()
        self._listener.start()
        self._housekeeper.start()
        self._watchdog.start()
        self._host.start(drain=self._scheduler.preempt_jobs, changed=self._models_changed)
        self.wake()

    def wake(self, *, background: bool = False) -> None:
        """Claim and start waiting work. Any thread may call; returns at once."""
        self._claimer.wake(background=background)

    def drain(self) -> None:
        """Take no more work. Background jobs are released for other workers; foreground responses may end by themselves
        for RESPONSES_GRACE_SECONDS, and are then stopped, so that their readers get a last event. Returns when all have
        ended.
        """
        self._claimer.stop()
        self._housekeeper.stop_chores()
        for run in self.table.live():
            if run.is_job:
                self._scheduler.stop(run, StopReason.SHUTDOWN)
        self._wait_until_idle(settings.RESPONSES_GRACE_SECONDS)
        for run in self.table.live():
            self._scheduler.stop(run, StopReason.SHUTDOWN)
        self._wait_until_idle(SHUTDOWN_SECONDS)

    def stop(self) -> None:
        """Drain, then close the engines and end the threads."""
        self.drain()
        self._housekeeper.stop(SHUTDOWN_SECONDS)
        self._watchdog.stop(SHUTDOWN_SECONDS)
        self._host.close()
        self._pump.stop(SHUTDOWN_SECONDS)
        self._listener.stop(SHUTDOWN_SECONDS)
        self._claimer.close()
        self._preparer.close()
        self._counter.stop()
        # Before the threads that wait for it: while the database is unavailable, it gives up only when it is stopped.
        self._log_writer.stop(SHUTDOWN_SECONDS)
        self._finisher.close()
        with suppress(DatabaseError):
            with_fresh_connection(forget_process, self.id)

    def _wait_until_idle(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self.table.count() and time.monotonic() < deadline:
            time.sleep(0.02)

    def _removed(self, run: Run) -> None:
        run.let_go()
        self._host.release(run)
        if run.published is not None:
            self.ended.add(run.lease.public_id, run.published)
        self._claimer.slot_freed()

    def _models_changed(self) -> None:
        """A model has been loaded or unloaded, or this begins: tell web processes, and claim what waits for it."""
        self._housekeeper.announce_soon()
        self._claimer.wake()

    def _publish(self, lease: Lease, first: int, events: list[EncodedEvent]) -> None:
        publish_job_events(lease.public_id, first, events)

    def _lose(self, lease: Lease) -> None:
        run = self.table.of_row(lease.response)
        if run is not None and run.lease == lease:
            self._scheduler.stop(run, StopReason.LOST)
