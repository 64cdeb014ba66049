"""What the server does, over all its processes: figures of `/v1/status` and `/metrics`. Nobody's name is in them."""

from collections import Counter as Tally
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Min, Sum
from django.db.models.functions import Now
from django.utils import timezone

from responses_api.models import Counter, Process, Response
from responses_api.models.response import ACTIVE

from .models import Offer, live_fleet
from .store_totals import get_store_totals


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """A live worker process."""

    host: str
    models: tuple[str, ...]
    slots: int
    running: int
    waiting: int
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """The server in sum. ``counts`` maps series (`counting.py`) to what all processes have counted."""

    uptime_seconds: int
    running: int
    waiting: int
    workers: tuple[WorkerStatus, ...]
    web_processes: int
    offers: tuple[Offer, ...]
    store_entries: int
    store_bytes: int
    counts: dict[str, float]


def server_status() -> ServerStatus:
    """The figures as of now: what runs and waits comes from the jobs' rows, which know before the next heartbeat."""
    live = Process.objects.filter(heartbeat_at__gt=Now() - timedelta(seconds=settings.RESPONSES_LEASE_SECONDS))
    workers = live_workers()
    entries, size = store_size()
    active = Response.objects.filter(status__in=ACTIVE).count()
    # A worker that has gone silent runs nothing: what it held waits.
    running = min(active, sum(worker.running for worker in workers))
    started = live.aggregate(first=Min("started_at"))["first"] or timezone.now()
    return ServerStatus(
        uptime_seconds=max(0, int((timezone.now() - started).total_seconds())),
        running=running,
        waiting=active - running,
        workers=workers,
        web_processes=live.filter(kind=Process.Kind.WEB).count(),
        offers=live_fleet().offers,
        store_entries=entries,
        store_bytes=size,
        counts=dict(Counter.objects.values_list("name", "value")),
    )


def live_workers() -> tuple[WorkerStatus, ...]:
    """The workers heard of within a lease. Of what one holds for a model, as much runs as the model has slots."""
    limit = Now() - timedelta(seconds=settings.RESPONSES_LEASE_SECONDS)
    held: Tally[tuple[str, str]] = Tally()
    for worker, model, jobs in (
        Response.objects.filter(status__in=ACTIVE)
        .exclude(worker="")
        .order_by()
        .values_list("worker", "model")
        .annotate(jobs=Count("pk"))
    ):
        held[worker, model] = jobs
    found = []
    for process in Process.objects.filter(kind=Process.Kind.WORKER, heartbeat_at__gt=limit).order_by("started_at"):
        names = tuple(offer["name"] for offer in process.offers)
        mine = {model: jobs for (worker, model), jobs in held.items() if worker == process.pk}
        slots = process.slots // max(1, len(names))
        running = sum(min(jobs, slots) for jobs in mine.values())
        found.append(
            WorkerStatus(
                host=process.host,
                models=names,
                slots=process.slots,
                running=running,
                waiting=sum(mine.values()) - running,
                started_at=process.started_at,
            )
        )
    return tuple(found)


def store_size() -> tuple[int, int]:
    """How many ended responses are stored, and all bytes: of responses, also running ones, of items, conversations."""
    totals = get_store_totals()
    running = Response.objects.filter(status__in=ACTIVE).aggregate(size=Sum("size"))["size"] or 0
    return totals.responses, totals.response_bytes + totals.conversation_bytes + running
