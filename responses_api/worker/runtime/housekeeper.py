"""The periodic work of a worker: its heartbeat, and on other threads everything that may take long."""

from functools import partial
from typing import Protocol

import structlog
from django.conf import settings

from responses_api.database.threads import with_fresh_connection
from responses_api.database.write_ahead_log import empty_write_ahead_log
from responses_api.interruptions import StopReason
from responses_api.models import Process
from responses_api.selectors.responses import existing_responses
from responses_api.services.accounts.forget_owner import existing_scopes
from responses_api.services.jobs.dispatch import wake_workers
from responses_api.services.jobs.leases import renew_leases
from responses_api.services.jobs.recover_jobs import orphaned_jobs, overdue_jobs, recover_background_jobs, recover_jobs
from responses_api.services.processes.announce_process import Announcement, announce_models, announce_process
from responses_api.services.processes.count_caches import CacheCounts
from responses_api.services.processes.freed_memory import return_freed_memory
from responses_api.services.processes.periodic import HEARTBEATS_PER_LEASE, Periodic
from responses_api.services.processes.publish_counts import publish_counts
from responses_api.services.processes.sweep import sweep
from responses_api.worker.hosting import ModelHost

from .ended_streams import EndedStreams
from .run_table import RunTable
from .scheduler import Scheduler

log = structlog.get_logger(__name__)


class Wake(Protocol):
    """Claims and starts waiting work."""

    def __call__(self, *, background: bool) -> None: ...


class Housekeeper:
    """Runs a few threads. The heartbeat has its own thread and its own database connection."""

    def __init__(
        self,
        *,
        worker: str,
        table: RunTable,
        scheduler: Scheduler,
        wake: Wake,
        ended: EndedStreams,
        host: ModelHost,
    ) -> None:
        self._worker = worker
        self._table = table
        self._scheduler = scheduler
        self._host = host
        beat = settings.RESPONSES_LEASE_SECONDS / HEARTBEATS_PER_LEASE
        self._heartbeat = Periodic("worker-heartbeat", self._renew, self._announce, seconds=beat, own_connection=True)
        # Work that the owner of leases must do until all have ended.
        self._watch = Periodic(
            "worker-watch", ended.forget_old, self._check_runs, self._count_caches, publish_counts, seconds=beat
        )
        # Work that other workers could do instead.
        self._chores = [
            Periodic("worker-recovery", recover_jobs, self._recover, partial(wake, background=True), seconds=beat),
            Periodic("worker-models", self._scan, seconds=beat),
            Periodic("worker-log", empty_write_ahead_log, return_freed_memory, seconds=beat),
        ]
        sweep_seconds = settings.RESPONSES_SWEEP_SECONDS
        self._sweeper = Periodic("worker-sweeper", self._sweep, seconds=sweep_seconds, first=min(beat, sweep_seconds))
        self._chores.append(Periodic("worker-cache", self._retain_caches, seconds=sweep_seconds))
        self._cache_counts = CacheCounts()

    def start(self) -> None:
        """Announce the worker, and start the threads."""
        with_fresh_connection(announce_models, self._host.announcements)
        with_fresh_connection(self._announce)
        for periodic in (self._heartbeat, self._watch, *self._chores, self._sweeper):
            periodic.start()

    def announce_soon(self) -> None:
        """Something has changed that web processes should know."""
        self._heartbeat.call_soon()

    def stop_chores(self) -> None:
        """The worker claims nothing more: only its leases are renewed."""
        for periodic in (*self._chores, self._sweeper):
            periodic.stop()

    def stop(self, timeout: float) -> None:
        """The worker has no more runs: leases need not be renewed."""
        everything = (self._heartbeat, self._watch, *self._chores, self._sweeper)
        for periodic in everything:
            periodic.stop()
        for periodic in everything:
            periodic.stop(timeout)
        self._count_caches()

    # The heartbeat

    def _renew(self) -> None:
        runs = self._table.live()
        renewed = renew_leases(worker=self._worker, rows=[run.lease.response for run in runs])
        for run in runs:
            key = run.lease.response
            if renewed.attempts.get(key) != run.lease.attempt:
                self._scheduler.stop(run, StopReason.LOST)
            elif key in renewed.cancel_requested:
                self._scheduler.stop(run, StopReason.CANCELLED if run.is_job else StopReason.LEFT)

    def _announce(self) -> None:
        loads = [model.load() for model in self._host if not model.refusal]
        announce_process(
            Announcement(
                id=self._worker,
                kind=Process.Kind.WORKER,
                slots=sum(load.slots for load in loads),
                running=sum(load.running for load in loads),
                waiting=sum(load.waiting for load in loads),
                step_seconds=max((load.step_seconds for load in loads), default=0.0),
                models=self._host.announcements,
                prompt_cache_bytes=sum(load.memory_cache.nbytes for load in loads),
                # Each has the size of the directory that they share.
                prompt_cache_disk_bytes=max((load.disk_cache.nbytes for load in loads), default=0),
            )
        )

    # The rest

    def _check_runs(self) -> None:
        runs = self._table.live()
        if not runs:
            return
        orphaned = set(orphaned_jobs(worker=self._worker))
        overdue = overdue_jobs(worker=self._worker)
        for run in runs:
            key = run.lease.response
            if key in orphaned:
                self._scheduler.stop(run, StopReason.CANCELLED if run.is_job else StopReason.LEFT)
            elif key in overdue:
                self._scheduler.stop(run, StopReason.TIMEOUT)

    def _count_caches(self) -> None:
        self._cache_counts.count({model.name: model.load() for model in self._host})

    def _retain_caches(self) -> None:
        """Drop what is cached of owners and of responses that are gone: those that have expired, and those of whose end
        this worker has not heard.
        """
        scopes = existing_scopes()
        for model in self._host:
            model.engine.retain(scopes)
            holders = frozenset(model.engine.holders())
            if gone := holders - existing_responses(holders):
                model.engine.release(gone)

    def _recover(self) -> None:
        if recover_background_jobs():
            wake_workers(background=True)

    def _scan(self) -> None:
        if self._host.scan():
            announce_models(self._host.announcements)

    def _sweep(self) -> None:
        sweep(process=self._worker, sleep=self._sweeper.wait)
