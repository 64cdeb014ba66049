"""The sweep: what is past its time goes, by one process at a time, in steps that leave the database to others between.

SQLite has one writer. A sweep that went on without a pause would keep it from heartbeats and new requests; so each step
is one short transaction, and after it the sweep sleeps for as long as the step took.
"""

import time
from collections.abc import Callable
from functools import partial

import structlog
from django.db import Error as DatabaseError

from .chores import release_chore, take_chore
from .event_log import expire_event_logs
from .expire_responses import expire_responses
from .make_room import make_room
from .recover_jobs import forget_silent_processes

log = structlog.get_logger(__name__)

CHORE = "sweep"
SHORTEST_PAUSE_SECONDS = 0.005


class SweepStopped(Exception):
    """This process stops, or another one sweeps."""


class Pace:
    """Called after each step of a sweep: sleeps as long as the step took, and keeps the sweep's lease."""

    def __init__(self, *, process: str, sleep: Callable[[float], bool]) -> None:
        self._process = process
        self._sleep = sleep
        self._began = time.monotonic()

    def __call__(self) -> None:
        """Raises :class:`SweepStopped` when the sweep is to end here."""
        if self._sleep(max(SHORTEST_PAUSE_SECONDS, time.monotonic() - self._began)):
            raise SweepStopped
        self._began = time.monotonic()
        if not take_chore(CHORE, holder=self._process):
            raise SweepStopped


def sweep(*, process: str, sleep: Callable[[float], bool]) -> None:
    """Remove what is past its time, unless another process is at it. ``sleep`` says whether to end early.

    A part that fails keeps none of the others from its turn.
    """
    if not take_chore(CHORE, holder=process):
        return
    pace = Pace(process=process, sleep=sleep)
    parts: dict[str, Callable[[], object]] = {
        "responses": partial(expire_responses, pace),
        "event logs": partial(expire_event_logs, pace),
        "room": partial(make_room, pace),
        "processes": forget_silent_processes,
    }
    try:
        for name, part in parts.items():
            _do(name, part)
            pace()
    except SweepStopped:
        return
    finally:
        release_chore(CHORE, holder=process)


def _do(name: str, part: Callable[[], object]) -> None:
    try:
        part()
    except SweepStopped:
        raise
    except DatabaseError as error:
        log.warning("sweep.database_failed", part=name, error=str(error))
    except Exception:  # whatever it was, the other parts must have their turn
        log.exception("sweep.failed", part=name)
