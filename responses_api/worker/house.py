"""The periodic work of a worker: its heartbeat, and on other threads all that may take long."""

from typing import Protocol

import structlog
from django.conf import settings

from responses_api.database.threads import with_fresh_connection
from responses_api.database.write_ahead_log import empty_write_ahead_log
from responses_api.models import Process
from responses_api.services.jobs.dispatch import wake_workers
from responses_api.services.jobs.leases import renew_leases
from responses_api.services.jobs.recover_jobs import orphaned_jobs, overdue_jobs, recover_background_jobs, recover_jobs
from responses_api.services.processes.announce_process import Announcement, announce_models, announce_process
from responses_api.services.processes.periodic import HEARTBEATS_A_LEASE, Periodic
from responses_api.services.processes.publish_counts import publish_counts
from responses_api.services.processes.sweep import sweep
from responses_api.worker.generation.run_generation import Generation

from .ended_streams import EndedStreams
from .hosted_models import ModelHost

log = structlog.get_logger(__name__)


class Holder(Protocol):
    """A worker, as its house knows it."""

    id: str
    ended: EndedStreams

    def live(self) -> list[Generation]: ...

    def cancel(self, run: Generation, reason: str) -> None: ...

    def wake(self, *, background: bool = False) -> None: ...


class House:
    """A few threads. The heartbeat shares its thread, and its database connection, with nothing."""

    def __init__(self, worker: Holder, host: ModelHost) -> None:
        self._worker = worker
        self._host = host
        beat = settings.RESPONSES_LEASE_SECONDS / HEARTBEATS_A_LEASE
        self._heartbeat = Periodic("worker-heartbeat", self._renew, self._announce, seconds=beat, own_connection=True)
        # What a lease's holder has to look after until it lets go.
        self._watch = Periodic("worker-watch", worker.ended.forget_old, self._look_after, publish_counts, seconds=beat)
        # What may be left to other workers.
        self._chores = [
            Periodic("worker-recovery", recover_jobs, self._recover, self._wake, seconds=beat),
            Periodic("worker-models", self._scan, seconds=beat),
            Periodic("worker-log", empty_write_ahead_log, seconds=beat),
        ]
        sweep_seconds = settings.RESPONSES_SWEEP_SECONDS
        self._sweeper = Periodic("worker-sweeper", self._sweep, seconds=sweep_seconds, first=min(beat, sweep_seconds))

    def open(self) -> None:
        """Announce the worker, and begin."""
        with_fresh_connection(announce_models, self._host.offers)
        with_fresh_connection(self._announce)
        for periodic in (self._heartbeat, self._watch, *self._chores, self._sweeper):
            periodic.start()

    def stop_chores(self) -> None:
        """The worker takes no more work, and renews only what it holds."""
        for periodic in (*self._chores, self._sweeper):
            periodic.stop()

    def close(self, timeout: float) -> None:
        """Nothing is held any more: leases need not be renewed."""
        everything = (self._heartbeat, self._watch, *self._chores, self._sweeper)
        for periodic in everything:
            periodic.stop()
        for periodic in everything:
            periodic.stop(timeout)

    # The heartbeat

    def _renew(self) -> None:
        runs = self._worker.live()
        held = renew_leases(worker=self._worker.id, rows=[run.lease.response for run in runs])
        for run in runs:
            key = run.lease.response
            if held.attempts.get(key) != run.lease.attempt:
                self._worker.cancel(run, "lost")
            elif key in held.cancel_requested:
                self._worker.cancel(run, "cancelled" if run.is_job else "left")

    def _announce(self) -> None:
        loads = [model.load() for model in self._host]
        announce_process(
            Announcement(
                id=self._worker.id,
                kind=Process.Kind.WORKER,
                slots=sum(load.slots for load in loads),
                running=sum(load.running for load in loads),
                waiting=sum(load.waiting for load in loads),
                offers=self._host.offers,
            )
        )

    # The rest

    def _look_after(self) -> None:
        runs = self._worker.live()
        if not runs:
            return
        orphaned = set(orphaned_jobs(worker=self._worker.id))
        overdue = overdue_jobs(worker=self._worker.id)
        for run in runs:
            key = run.lease.response
            if key in orphaned:
                self._worker.cancel(run, "cancelled" if run.is_job else "left")
            elif key in overdue:
                self._worker.cancel(run, "timeout")

    def _recover(self) -> None:
        if recover_background_jobs():
            wake_workers(background=True)

    def _wake(self) -> None:
        self._worker.wake(background=True)

    def _scan(self) -> None:
        if self._host.scan():
            announce_models(self._host.offers)

    def _sweep(self) -> None:
        sweep(process=self._worker.id, sleep=self._sweeper.wait)
