"""The sweep: what is past its time goes, by one process at a time, in steps that leave the database to others between.

SQLite has one writer. A sweep that went on without a pause would keep it from heartbeats and new requests; so each step
is one short transaction, after which the sweep sleeps (`sweep_pace.py`).
"""

from collections.abc import Callable
from functools import partial

import structlog
from django.db import Error as DatabaseError

from responses_api.services.jobs.event_log import expire_event_logs
from responses_api.services.jobs.recover_jobs import forget_silent_processes
from responses_api.services.store.make_room import make_room

from .chores import release_chore, take_chore
from .expire_responses import expire_responses
from .sweep_pace import CHORE, Pace, SweepStopped

log = structlog.get_logger(__name__)


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
