"""The sweep removes expired data. One process at a time runs it, in steps with pauses between them.

SQLite has one writer, and a sweep without pauses would block heartbeats and new requests. Each step is therefore one
short transaction, after which the sweep sleeps (`sweep_pace.py`).
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
    """Remove expired data, unless another process is sweeping. ``sleep`` returns whether to end early.

    When a part fails, the error is logged and the next part runs.
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
            _run_part(name, part)
            pace()
    except SweepStopped:
        return
    finally:
        release_chore(CHORE, holder=process)


def _run_part(name: str, part: Callable[[], object]) -> None:
    try:
        part()
    except SweepStopped:
        raise
    except DatabaseError as error:
        log.warning("sweep.database_failed", part=name, error=str(error))
    except Exception:  # whatever it was, the other parts must run
        log.exception("sweep.failed", part=name)
