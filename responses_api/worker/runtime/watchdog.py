"""Finds an engine whose step doesn't end, and replaces its process."""

import os
import sys
import time
from contextlib import suppress

import structlog
from django.conf import settings
from django.db import Error as DatabaseError

from inference.types import Chunk, Sink
from responses_api.database.threads import with_fresh_connection
from responses_api.interruptions import StopReason
from responses_api.services.processes.announce_process import forget_process
from responses_api.services.processes.periodic import HEARTBEATS_PER_LEASE, Periodic
from responses_api.worker.hosting import HostedModel, ModelHost

from .claimer import Claimer
from .run_table import RunTable
from .scheduler import Scheduler

log = structlog.get_logger(__name__)

STUCK = "The model stopped responding in the middle of this response. Send the request again."
EXIT_STATUS = 70
"""EX_SOFTWARE of sysexits.h."""
STANDARD_ERROR = 2
STORE_SECONDS = 10.0
"""Longest wait for the ends of the requests to be stored."""
SEND_SECONDS = 1.0
"""Time for the last events to leave the process."""


class Watchdog:
    """One thread that looks at the age of each engine's current step.

    A call into native code can't be interrupted, so the process ends with ``EXIT_STATUS`` and its supervisor starts a
    new one. Before that, the requests of the stuck engine fail, its background jobs are released as lost attempts, and
    all others are stopped as in a shutdown.
    """

    def __init__(
        self, *, worker: str, table: RunTable, host: ModelHost, claimer: Claimer, scheduler: Scheduler, sink: Sink
    ) -> None:
        self._worker = worker
        self._table = table
        self._host = host
        self._claimer = claimer
        self._scheduler = scheduler
        self._sink = sink
        seconds = settings.RESPONSES_LEASE_SECONDS / HEARTBEATS_PER_LEASE
        self._periodic = Periodic("worker-watchdog", self._check, seconds=seconds)

    def start(self) -> None:
        """Start the thread."""
        self._periodic.start()

    def stop(self, timeout: float) -> None:
        """End the thread."""
        self._periodic.stop(timeout)

    def _check(self) -> None:
        limit = settings.RESPONSES_STEP_TIMEOUT_SECONDS
        for model in self._host if limit else ():
            seconds = model.load().step_seconds
            if seconds > limit:
                self._periodic.stop()
                self._replace_process(model, seconds)
                return

    def _replace_process(self, model: HostedModel, seconds: float) -> None:
        self._claimer.stop()
        runs = self._table.live()
        stuck = [run for run in runs if run.model == model.name and self._table.of_sequence(run.sequence_id) is run]
        log.critical(
            "worker.engine_stuck",
            model=model.name,
            step_seconds=round(seconds, 1),
            requests=[run.sequence_id for run in stuck],
        )
        self._sink([Chunk(request_id=run.sequence_id, finish="error", error=STUCK) for run in stuck])
        for run in runs:
            if run not in stuck:
                self._scheduler.stop(run, StopReason.SHUTDOWN)
        deadline = time.monotonic() + STORE_SECONDS
        while self._table.count() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(SEND_SECONDS)
        with suppress(DatabaseError):
            with_fresh_connection(forget_process, self._worker)
        end_process(
            f"error: a step of {model.name} has not ended for {seconds:.0f} s (RESPONSES_STEP_TIMEOUT_SECONDS). This "
            "process ends, and its supervisor should start it again."
        )


def end_process(sentence: str) -> None:
    """End at once: an ordinary exit would wait for the engine's thread."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(STANDARD_ERROR, f"{sentence}\n".encode())  # Celery redirects `sys.stderr` to its log
    os._exit(EXIT_STATUS)
