"""Prepares claimed rows: each is submitted to an engine, or refused."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import structlog
from django.db import Error as DatabaseError

from inference.types import GenerationRequest, ModelError
from responses_api.caller import cache_scope
from responses_api.database.threads import with_fresh_connection
from responses_api.errors import ApiError, Overloaded, ServerError
from responses_api.interruptions import Interrupted, StopReason
from responses_api.models import Response
from responses_api.selectors.history import history_size
from responses_api.worker.generation.logged_output import NOT_CONTINUED, CannotContinue
from responses_api.worker.generation.prepare_generation import Compacting, prepare_generation
from responses_api.worker.generation.run import Run
from responses_api.worker.hosting import ModelHost

from .counting import HEAVY_BYTES
from .run_table import RunTable
from .scheduler import Scheduler

log = structlog.get_logger(__name__)

NO_DATABASE = "The server's database can't be reached at the moment. Try again."
NOT_PREPARED = "The server failed to prepare this request."

Step = Callable[[], GenerationRequest | Compacting | None]


class Preparer:
    """Prepares small requests on the calling thread, where they wait neither for large ones nor for a compaction. Those
    have separate threads, since rendering takes as long as the text is long.

    A foreground request is prepared while its model is loaded: it is refused at once if it is invalid, and its stream
    opens. A background job stays in the queue until its model is loaded.
    """

    def __init__(self, *, table: RunTable, host: ModelHost, scheduler: Scheduler) -> None:
        self._table = table
        self._host = host
        self._scheduler = scheduler
        self._preparers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="prepare")
        self._compactors = ThreadPoolExecutor(max_workers=2, thread_name_prefix="compact")

    def begin(self, row: Response, run: Run) -> None:
        """Prepare a claimed row and submit it. Never raises: a run that can't be prepared is refused."""
        is_waiting = run.is_job and not self._host.hold(
            run,
            ready=lambda: self._preparers.submit(self._begin, row, run),
            failed=lambda error: self._preparers.submit(self._attempt, run, lambda: raised(error)),
        )
        if is_waiting:
            if run.is_to_stop():
                # Stopped before it waited.
                self._host.withdraw(run)
            return
        if is_heavy(row):
            self._preparers.submit(self._begin, row, run)
        else:
            self._begin(row, run)

    def compact(self, run: Run) -> None:
        """A summary has ended: submit the next one, or the answer. Returns at once."""
        self._compactors.submit(self._attempt, run, run.compacted)

    def refuse(self, run: Run, error: ApiError) -> None:
        """End a run that has not been accepted. Never raises."""
        try:
            run.refuse(error)
        except Exception:  # a row that can't be removed now is found when its lease has expired
            log.exception("worker.refusal_failed", response=run.lease.public_id)
        finally:
            self._table.remove(run)

    def close(self) -> None:
        """Start nothing more, and return when all threads have ended."""
        for pool in (self._preparers, self._compactors):
            pool.shutdown(wait=True)

    def _begin(self, row: Response, run: Run) -> None:
        self._attempt(run, lambda: self._prepared(row, run))

    def _attempt(self, run: Run, step: Step) -> None:
        try:
            with_fresh_connection(self._advance, run, step)
        except Exception:  # other requests must be prepared, and the slot must become free
            log.exception("worker.prepare_failed", response=run.lease.public_id)
            self._table.remove(run)

    def _advance(self, run: Run, step: Step) -> None:
        """Generate what the next step asks for; a step that fails refuses the request."""
        try:
            request = step()
        except Exception as error:  # the client must get an answer in any case
            self.refuse(run, refusal(run, error))
            return
        if isinstance(request, Compacting):
            self._compactors.submit(self._attempt, run, lambda: run.begin(request))
        else:
            self._scheduler.submit(run, request)

    def _prepared(self, row: Response, run: Run) -> GenerationRequest | Compacting | None:
        def check() -> None:
            if run.is_to_stop():
                raise Interrupted

        check()  # before a model is loaded in vain
        model = self._host[row.model]
        continuation = run.start(model.engine.info.digest)
        check()
        ready = prepare_generation(
            row=row,
            request_id=run.request_id,
            tokenizer=model.tokenizer,
            info=model.engine.info,
            cache_scope=cache_scope(project_id=row.project_id, key_id=row.key_id),
            continuation=continuation,
            check=check,
        )
        return ready if isinstance(ready, Compacting) else run.begin(ready)


def raised(error: Exception) -> NoReturn:
    """A step that fails."""
    raise error


def is_heavy(row: Response) -> bool:
    """Whether preparing a row takes long, by the size of its history and request."""
    if len(row.request) > HEAVY_BYTES or row.parent_id is None:
        return len(row.request) > HEAVY_BYTES
    try:
        return len(row.request) + with_fresh_connection(history_size, row.parent_id) > HEAVY_BYTES
    except DatabaseError:  # preparing the row will raise the same error, and handle it
        return True


def refusal(run: Run, error: Exception) -> ApiError:
    """The error for a client whose request could not be prepared."""
    response = run.lease.public_id
    match error:
        case ApiError():
            return error
        case Interrupted():
            return run.interruption()
        case CannotContinue():
            log.error("worker.job_not_continued", response=response)
            return ServerError(NOT_CONTINUED)
        case ModelError():
            # The reason may contain paths and other details of this machine.
            log.error("worker.model_not_loaded", model=run.model, response=response, error=str(error))
            return Overloaded(StopReason.NOT_LOADED.sentence)
        case DatabaseError():
            log.warning("worker.prepare_failed", response=response, error=str(error))
            return Overloaded(NO_DATABASE)
        case _:
            log.error("worker.prepare_failed", response=response, exc_info=error)
            return ServerError(NOT_PREPARED)
