"""Claims rows: more interactive requests than there are free slots, background jobs only for free slots."""

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
from responses_api.worker.hosting import ModelHost

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
        """Claim and start waiting work. A claim that is pending serves this call, too.

        Background jobs are claimed only when some may be waiting, since every request waits for that query.
        """
        with self._lock:
            self._jobs_wait = self._jobs_wait or background
            if self._is_claim_pending or self._stopping.is_set():
                return
            self._is_claim_pending = True
        self._threads.submit(self._claim)

    def slot_freed(self) -> None:
        """A run has ended: claim a background job for its slot, if some may be waiting."""
        with self._lock:
            jobs_wait = self._jobs_wait
        if jobs_wait:
            self.wake()

    def stop(self) -> None:
        """Claim nothing more; rows of a claim in progress are released."""
        self._stopping.set()

    def close(self) -> None:
        """Stop, and return when no claim is in progress."""
        self.stop()
        self._threads.shutdown(wait=True)

    def _claim(self) -> None:
        with self._lock:
            self._is_claim_pending = False
        try:
            self._claim_waiting()
        except DatabaseError as error:
            log.warning("worker.claim_failed", error=str(error))
        except Exception:  # on a thread of the pool, where it would be lost
            log.exception("worker.claim_failed")

    def _claim_waiting(self) -> None:
        """Claim and start interactive requests up to the limit, then background jobs for free slots."""
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
        """Claim and start up to ``limit`` interactive requests; returns how many there were."""
        claimed = self._claim_rows(self._host.names, limit)
        self._begin(claimed)
        return len(claimed)

    def _claim_jobs(self, model: str) -> bool:
        """Claim and start jobs of a model for free slots; returns whether there may be more jobs and slots."""
        if not self._host.takes_jobs(model):
            # They wait in the queue, where other workers find them.
            with self._lock:
                self._jobs_wait = True
            return False
        # One at a time: two claims would count the same slots as free.
        with self._job_claims:
            limit = min(CLAIM_BATCH, settings.RESPONSES_BATCH_SIZE - self._table.count(model))
            if limit < 1:
                # Some jobs may be waiting for the next free slot.
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
        # All are added to the table before the first is started, which may have to wait for a model to load.
        return [(row, self._take(row)) for row in rows]

    def _take(self, row: Response) -> Run:
        lease = Lease(response=row.pk, public_id=row.public_id, worker=self._worker, attempt=row.attempt)
        run = new_run(row=row, lease=lease, log=JobLog(lease, LogCursor(), self._log_writer))
        earlier = self._table.add(run)
        if self._stopping.is_set():
            # This claim was in progress when the worker stopped its runs.
            run.stop(StopReason.SHUTDOWN)
        if earlier is not None:
            # This worker lost the job and has claimed it again.
            self._scheduler.stop(earlier, StopReason.LOST)
        return run

    def _begin(self, claimed: list[tuple[Response, Run]]) -> None:
        for row, run in claimed:
            self._preparer.begin(row, run)
