"""Claiming rows: interactive requests a little ahead of the slots, background jobs for slots that are free."""

import threading
from concurrent.futures import ThreadPoolExecutor

import structlog
from django.conf import settings
from django.db import Error as DatabaseError

from responses_api.database.threads import with_fresh_connection
from responses_api.interruptions import StopReason
from responses_api.models import Response
from responses_api.services.jobs.event_log import LogCursor
from responses_api.services.jobs.leases import Lease, claim_responses
from responses_api.worker.generation.run import Run, new_run

from .hosted_models import ModelHost
from .log_writer import JobLog, LogWriter
from .preparer import Preparer
from .run_table import RunTable
from .scheduler import Scheduler

log = structlog.get_logger(__name__)

CLAIM_BATCH = 8


class Claimer:
    """``wake`` and ``slot_freed`` may be called from any number of threads, and return at once."""

    def __init__(
        self,
        *,
        worker: str,
        table: RunTable,
        host: ModelHost,
        scheduler: Scheduler,
        preparer: Preparer,
        log_writer: LogWriter,
    ) -> None:
        self._worker = worker
        self._table = table
        self._host = host
        self._scheduler = scheduler
        self._preparer = preparer
        self._log_writer = log_writer
        # Threads of our own, since Celery closes the database connection around every task.
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="claim")
        self._lock = threading.Lock()
        self._is_claim_pending = False
        self._jobs_wait = True
        self._job_claims = threading.Lock()
        self._stopping = threading.Event()

    def wake(self, *, background: bool = False) -> None:
        """Claim and start waiting work. A claim that has not begun yet serves this call too.

        Background jobs are looked for only when there may be some, since every request waits for that query.
        """
        with self._lock:
            self._jobs_wait = self._jobs_wait or background
            if self._is_claim_pending or self._stopping.is_set():
                return
            self._is_claim_pending = True
        self._threads.submit(self._claim)

    def slot_freed(self) -> None:
        """A run has ended: claim a background job for its slot, if some wait."""
        with self._lock:
            jobs_wait = self._jobs_wait
        if jobs_wait:
            self.wake()

    def stop(self) -> None:
        """Claim nothing more; what a claim that is under way still brings is given back."""
        self._stopping.set()

    def close(self) -> None:
        """Returns when no claim is under way any more."""
        self.stop()
        self._threads.shutdown(wait=True)

    def _claim(self) -> None:
        with self._lock:
            self._is_claim_pending = False
        try:
            self._claim_waiting()
        except DatabaseError as error:
            log.warning("worker.claim_failed", error=str(error))
        except Exception:  # a thread of the pool: nobody else would hear of it
            log.exception("worker.claim_failed")

    def _claim_waiting(self) -> None:
        """Claim and begin: interactive requests as far as there is room, then background jobs for free slots."""
        while not self._stopping.is_set():
            limit = min(CLAIM_BATCH, self._room())
            if limit < 1 or self._claim_interactive(limit) < limit:
                break
        with self._lock:
            jobs_wait, self._jobs_wait = self._jobs_wait, False
        if not jobs_wait:
            return
        for name in self._host.names:
            while not self._stopping.is_set() and self._claim_jobs(name):
                pass

    def _claim_interactive(self, limit: int) -> int:
        """Claim and begin up to ``limit`` interactive requests; returns how many there were."""
        claimed = self._claim_rows(self._host.names, limit)
        self._begin(claimed)
        return len(claimed)

    def _claim_jobs(self, model: str) -> bool:
        """Claim and begin jobs of a model for slots that are free; says whether there may be more of both."""
        # One at a time: two would find the same slots free.
        with self._job_claims:
            limit = min(CLAIM_BATCH, settings.RESPONSES_BATCH_SIZE - self._table.count(model))
            if limit < 1:
                # Some may wait for the next slot that is free.
                with self._lock:
                    self._jobs_wait = True
                return False
            claimed = self._claim_rows([model], limit, background=True)
        self._begin(claimed)
        return len(claimed) == limit

    def _room(self) -> int:
        slots: int = settings.RESPONSES_BATCH_SIZE * len(self._host.names)
        return slots + settings.RESPONSES_CLAIM_AHEAD - self._table.count()

    def _claim_rows(self, models: list[str], limit: int, *, background: bool = False) -> list[tuple[Response, Run]]:
        rows = with_fresh_connection(
            claim_responses, worker=self._worker, models=models, limit=limit, background=background
        )
        # All are in the table before the first begins, which may take as long as a model takes to load.
        return [(row, self._take(row)) for row in rows]

    def _take(self, row: Response) -> Run:
        lease = Lease(response=row.pk, public_id=row.public_id, worker=self._worker, attempt=row.attempt)
        run = new_run(row=row, lease=lease, log=JobLog(lease, LogCursor(), self._log_writer))
        earlier = self._table.add(run)
        if self._stopping.is_set():
            # The claim was under way when the worker was stopped, and with it the runs that it had then.
            run.stop(StopReason.SHUTDOWN)
        if earlier is not None:
            # This worker lost the job and has got it again.
            self._scheduler.stop(earlier, StopReason.LOST)
        return run

    def _begin(self, claimed: list[tuple[Response, Run]]) -> None:
        for row, run in claimed:
            self._preparer.begin(row, run)
