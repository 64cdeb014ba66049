"""Continues after the end of a sequence: with the next sequence of its run, or with the run's end."""

from concurrent.futures import ThreadPoolExecutor

import structlog

from inference.types import Finish
from responses_api.database.threads import with_fresh_connection
from responses_api.errors import ServerError
from responses_api.worker.generation.run import Run

from .preparer import Preparer
from .run_table import RunTable
from .scheduler import Scheduler

log = structlog.get_logger(__name__)


class Finisher:
    """Stores ends on separate threads, so that neither the pump nor an engine waits for the database."""

    def __init__(self, *, table: RunTable, scheduler: Scheduler, preparer: Preparer) -> None:
        self._table = table
        self._scheduler = scheduler
        self._preparer = preparer
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="finish")

    def finish(self, run: Run, finish: Finish, *, error: str, is_preempted: bool) -> None:
        """The open sequence of a run has ended. Returns at once."""
        self._threads.submit(self._try_to_finish, run, finish, error, is_preempted)

    def close(self) -> None:
        """Return when all ends are stored."""
        self._threads.shutdown(wait=True)

    def _try_to_finish(self, run: Run, finish: Finish, error: str, is_preempted: bool) -> None:
        try:
            self._finish(run, finish, error, is_preempted)
        except Exception:  # the future is not read, and the slot must become free
            log.exception("worker.end_failed", response=run.lease.public_id)
            self._table.remove(run)

    def _finish(self, run: Run, finish: Finish, error: str, is_preempted: bool) -> None:
        if is_preempted and finish == "cancelled" and not run.is_to_stop():
            self._scheduler.resubmit(run, run.resume())
        elif not run.is_compacting:
            with_fresh_connection(run.close, finish, error=error)
            self._table.remove(run)
        elif finish in ("stop", "length") and not run.is_to_stop():
            self._preparer.compact(run)
        else:
            with_fresh_connection(self._preparer.refuse, run, ServerError(error) if error else run.interruption())
