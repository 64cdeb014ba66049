"""Recovers the jobs of crashed processes. Safe to run anywhere, any time, by several at once."""

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

from .end_job import end_unowned
from .leases import MAX_LOST_ATTEMPTS, overdue_rows
from .remove_jobs import remove_jobs

log = structlog.get_logger(__name__)

ENDED_AT_ONCE = 20
"""Most jobs of a kind that are ended in one call, since the process that recovers them has leases to renew."""
LOST_TOO_OFTEN = "Workers were lost again and again while they generated this response. Send the request again."


def recover_jobs() -> int:
    """Remove foreground jobs that can't be finished: their worker's lease or their reader's process has expired.

    A foreground response is stored only when it ends, so nothing stored is lost. Rows that a live worker owns stay:
    that worker watches their readers. Returns how many were removed.
    """
    limit = Now() - timedelta(seconds=settings.RESPONSES_LEASE_SECONDS)
    reader_lives = Process.objects.filter(pk=OuterRef("reader"), heartbeat_at__gt=limit)
    lost_worker = Q(lease_until__lt=Now()) & ~Q(worker="")
    lost_reader = Q(worker="", created_at__lt=limit) & ~Exists(reader_lives)
    lost = Response.objects.filter(lost_worker | lost_reader, status__in=ACTIVE, background=False)
    # Checked by a read first: on SQLite a write waits for other writes even if it changes nothing.
    return remove_jobs(lost) if lost.exists() else 0


def recover_background_jobs() -> bool:
    """Release background jobs whose worker's lease has expired, and end those that are not to be resumed.

    Ended are jobs that were to be cancelled, that have exceeded their timeout, or that have too many lost attempts in a
    row. Returns whether any job was released.
    """
    lost = Q(lease_until__lt=Now()) & ~Q(worker="")
    jobs = Response.objects.filter(background=True, status__in=ACTIVE)
    freed = jobs.filter(lost, cancel_requested_at=None, lost_attempts__lt=MAX_LOST_ATTEMPTS).update(
        worker="", lease_until=None
    )
    count(JOBS_RECOVERED, freed)
    cancelled = jobs.filter(lost | Q(worker=""), cancel_requested_at__isnull=False)
    for pk in cancelled.values_list("pk", flat=True)[:ENDED_AT_ONCE]:
        try_to_end(pk, outcome="cancelled")
    too_often = jobs.filter(lost, cancel_requested_at=None, lost_attempts__gte=MAX_LOST_ATTEMPTS)
    for pk in too_often.values_list("pk", flat=True)[:ENDED_AT_ONCE]:
        try_to_end(pk, outcome="failed", error={"code": "server_error", "message": LOST_TOO_OFTEN})
    for pk in overdue_rows(jobs.filter(worker=""))[:ENDED_AT_ONCE]:
        try_to_end(pk, outcome="failed", error={"code": "server_error", "message": StopReason.TIMEOUT.sentence})
    return freed > 0


def try_to_end(pk: int, *, outcome: Outcome, error: ResponseError | None = None) -> None:
    """End a job that no worker owns. An error is logged, so that the next job can be ended."""
    try:
        end_unowned(pk, outcome=outcome, error=error)
    except DatabaseError:
        raise
    except Exception:  # for example, a row that another version wrote
        log.exception("job.not_ended", row=pk)


def overdue_jobs(*, worker: str) -> set[int]:
    """The rows of ``worker`` that have exceeded their timeout."""
    return set(overdue_rows(Response.objects.filter(worker=worker, status__in=ACTIVE)))


def orphaned_jobs(*, worker: str) -> list[int]:
    """Running foreground jobs of ``worker`` whose reader's process has expired: nobody will read them."""
    limit = Now() - timedelta(seconds=settings.RESPONSES_LEASE_SECONDS)
    reader_lives = Process.objects.filter(pk=OuterRef("reader"), heartbeat_at__gt=limit)
    rows = Response.objects.filter(
        ~Exists(reader_lives), worker=worker, status__in=ACTIVE, background=False, created_at__lt=limit
    )
    return list(rows.values_list("pk", flat=True))


def forget_silent_processes() -> None:
    """Remove the rows of processes whose last heartbeat is an hour old."""
    Process.objects.filter(heartbeat_at__lt=Now() - timedelta(hours=1)).delete()
