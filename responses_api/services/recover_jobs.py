"""What crashed processes left behind. Safe to run anywhere, any time, by several at once."""

from datetime import timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from responses_api.models import Process, Response
from responses_api.models.response import ACTIVE

from .delete_response import sweep_turn


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
    histories = set(lost.values_list("parent_id", flat=True))
    removed, _ = lost.delete()
    for turn_id in histories:
        sweep_turn(turn_id)
    return removed


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
