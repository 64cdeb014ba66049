"""What the server does, over all its processes: figures of `/v1/status` and `/metrics`. Nobody's name is in them."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Max, Min, Q, QuerySet, Sum
from django.db.models.functions import Now
from django.utils import timezone

from responses_api.models import Counter, Process, Response
from responses_api.models.store.response import ACTIVE

from .kept_events import kept_events
from .models import Offer, live_fleet
from .store_totals import get_store_totals


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """A live worker process."""

    host: str
    pid: int
    models: tuple[str, ...]
    slots: int
    running: int
    background_running: int
    """Of these, background jobs."""
    waiting: int
    started_at: datetime
    heartbeat_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """The server in sum. ``counts`` maps series (`counting.py`) to what all processes have counted."""

    uptime_seconds: int
    running: int
    waiting: int
    background_running: int
    """Of those that run, background jobs."""
    background_waiting: int
    """Likewise of those that wait."""
    events: int
    """Events of background jobs that are kept."""
    event_bytes: int
    readers: int
    """Clients that wait for a response or stream one, by the web processes' last heartbeats."""
    workers: tuple[WorkerStatus, ...]
    web_processes: int
    assembly_bytes: int
    """Bytes of histories that all processes read at the moment, by their last heartbeats."""
    offers: tuple[Offer, ...]
    store_entries: int
    store_bytes: int
    counts: dict[str, float]


def server_status() -> ServerStatus:
    """The figures as of now: what runs and waits comes from the jobs' rows, which know before the next heartbeat."""
    live = Process.objects.filter(heartbeat_at__gt=Now() - timedelta(seconds=settings.RESPONSES_LEASE_SECONDS))
    workers = live_workers()
    entries, size = store_size()
    events, event_bytes = kept_events()
    is_background = Q(background=True)
    active = Response.objects.filter(status__in=ACTIVE).aggregate(
        all=Count("pk"), background=Count("pk", filter=is_background)
    )
    # A worker that has gone silent runs nothing: what it held waits.
    running = min(active["all"], sum(worker.running for worker in workers))
    background_running = min(active["background"], running, sum(worker.background_running for worker in workers))
    web = live.filter(kind=Process.Kind.WEB).aggregate(processes=Count("pk"), readers=Sum("running"))
    started = live.aggregate(first=Min("started_at"))["first"] or timezone.now()
    return ServerStatus(
        uptime_seconds=max(0, int((timezone.now() - started).total_seconds())),
        running=running,
        waiting=active["all"] - running,
        background_running=background_running,
        background_waiting=active["background"] - background_running,
        events=events,
        event_bytes=event_bytes,
        readers=web["readers"] or 0,
        workers=workers,
        web_processes=web["processes"],
        assembly_bytes=assembly_bytes(live),
        offers=live_fleet().offers,
        store_entries=entries,
        store_bytes=size,
        counts=dict(Counter.objects.values_list("name", "value")),
    )


def assembly_bytes(live: QuerySet[Process]) -> int:
    """The bytes of histories being read; a process that is both web and worker says them twice."""
    by_process = live.order_by().values("host", "pid").annotate(bytes=Max("assembly_bytes"))
    return sum(row["bytes"] for row in by_process)


def live_workers() -> tuple[WorkerStatus, ...]:
    """The workers heard of within a lease. Of what one holds for a model, as much runs as the model has slots, and
    interactive requests before background jobs.
    """
    limit = Now() - timedelta(seconds=settings.RESPONSES_LEASE_SECONDS)
    held = held_by_workers()
    found = []
    for process in Process.objects.filter(kind=Process.Kind.WORKER, heartbeat_at__gt=limit).order_by("started_at"):
        names = tuple(offer["name"] for offer in process.offers)
        mine = held.get(process.pk, [])
        slots = process.slots // max(1, len(names))
        running = sum(min(interactive + background, slots) for interactive, background in mine)
        found.append(
            WorkerStatus(
                host=process.host,
                pid=process.pid,
                models=names,
                slots=process.slots,
                running=running,
                background_running=running - sum(min(interactive, slots) for interactive, _ in mine),
                waiting=sum(map(sum, mine)) - running,
                started_at=process.started_at,
                heartbeat_at=process.heartbeat_at,
            )
        )
    return tuple(found)


def held_by_workers() -> dict[str, list[tuple[int, int]]]:
    """What each worker holds: for each model, the number of interactive requests and of background jobs."""
    is_background = Q(background=True)
    found: dict[str, list[tuple[int, int]]] = {}
    for worker, interactive, background in (
        Response.objects.filter(status__in=ACTIVE)
        .exclude(worker="")
        .order_by()
        .values("worker", "model")
        .annotate(interactive=Count("pk", filter=~is_background), jobs=Count("pk", filter=is_background))
        .values_list("worker", "interactive", "jobs")
    ):
        found.setdefault(worker, []).append((interactive, background))
    return found


def store_size() -> tuple[int, int]:
    """How many ended responses are stored, and all bytes: of responses, also running ones, of items, conversations."""
    totals = get_store_totals()
    running = Response.objects.filter(status__in=ACTIVE).aggregate(size=Sum("size"))["size"] or 0
    return totals.responses, totals.response_bytes + totals.conversation_bytes + running
