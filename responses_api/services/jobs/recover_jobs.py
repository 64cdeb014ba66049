"""What crashed processes left behind. Safe to run anywhere, any time, by several at once."""

from datetime import timedelta

import structlog
from django.conf import settings
from django.db import Error as DatabaseError
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from responses_api.counting import JOBS_RECOVERED, count
from responses_api.interruptions import StopReason
from responses_api.models import Process, Response
from responses_api.models.store.response import ACTIVE
from responses_api.protocol.objects import ResponseError
from responses_api.streaming import Outcome

from .end_job import end_unheld
from .leases import MAX_LOSSES, overdue_rows
from .remove_jobs import remove_jobs

log = structlog.get_logger(__name__)

ENDED_AT_ONCE = 20
"""So many of a kind, for whoever recovers jobs has leases of its own to renew."""
LOST_TOO_OFTEN = "Workers were lost again and again while they generated this response. Send the request again."


def recover_jobs() -> int:
    """Remove foreground jobs that can't be finished: their worker's lease is over, or their reader's process is gone.

    A foreground response is stored only when it ends, so nothing stored is lost. A row that a worker still holds stays:
    its worker looks after it. Returns how many were removed.
    """
    limit = Now() - timedelta(seconds=settings.RESPONSES_LEASE_SECONDS)
    reader_lives = Process.objects.filter(pk=OuterRef("reader"), heartbeat_at__gt=limit)
    lost_worker = Q(lease_until__lt=Now()) & ~Q(worker="")
    lost_reader = Q(worker="", created_at__lt=limit) & ~Exists(reader_lives)
    lost = Response.objects.filter(lost_worker | lost_reader, status__in=ACTIVE, background=False)
    # Looked at first: on SQLite a write that changes nothing waits for other writes all the same.
    return remove_jobs(lost) if lost.exists() else 0


def recover_background_jobs() -> bool:
    """Free background jobs whose worker's lease is over, and end those that are not to go on.

    Ended are: what was to be cancelled, what has taken longer than it may, and what too many workers have lost in a
    row. Says whether any is free for a worker now.
    """
    lost = Q(lease_until__lt=Now()) & ~Q(worker="")
    jobs = Response.objects.filter(background=True, status__in=ACTIVE)
    freed = jobs.filter(lost, cancel_requested_at=None, losses__lt=MAX_LOSSES).update(worker="", lease_until=None)
    count(JOBS_RECOVERED, freed)
    cancelled = jobs.filter(lost | Q(worker=""), cancel_requested_at__isnull=False)
    for pk in cancelled.values_list("pk", flat=True)[:ENDED_AT_ONCE]:
        try_to_end(pk, outcome="cancelled")
    too_often = jobs.filter(lost, cancel_requested_at=None, losses__gte=MAX_LOSSES)
    for pk in too_often.values_list("pk", flat=True)[:ENDED_AT_ONCE]:
        try_to_end(pk, outcome="failed", fault={"code": "server_error", "message": LOST_TOO_OFTEN})
    for pk in overdue_rows(jobs.filter(worker=""))[:ENDED_AT_ONCE]:
        try_to_end(pk, outcome="failed", fault={"code": "server_error", "message": StopReason.TIMEOUT.sentence})
    return freed > 0


def try_to_end(pk: int, *, outcome: Outcome, fault: ResponseError | None = None) -> None:
    """End a job that no worker holds. One that can't be ended must not keep the others from it."""
    try:
        end_unheld(pk, outcome=outcome, fault=fault)
    except DatabaseError:
        raise
    except Exception:  # another version's row, say: the next one must be ended
        log.exception("job.not_ended", row=pk)


def overdue_jobs(*, worker: str) -> set[int]:
    """Rows that ``worker`` holds and that have taken longer than they may."""
    return set(overdue_rows(Response.objects.filter(worker=worker, status__in=ACTIVE)))


def orphaned_jobs(*, worker: str) -> list[int]:
    """Running foreground jobs of ``worker`` whose reader's process is gone: nobody will read them."""
    limit = Now() - timedelta(seconds=settings.RESPONSES_LEASE_SECONDS)
    reader_lives = Process.objects.filter(pk=OuterRef("reader"), heartbeat_at__gt=limit)
    rows = Response.objects.filter(
        ~Exists(reader_lives), worker=worker, status__in=ACTIVE, background=False, created_at__lt=limit
    )
    return list(rows.values_list("pk", flat=True))


def forget_silent_processes() -> None:
    """Remove the rows of processes that have said nothing for an hour."""
    Process.objects.filter(heartbeat_at__lt=Now() - timedelta(hours=1)).delete()
