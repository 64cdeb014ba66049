"""Figures of `/v1/status` and `/metrics`, over all processes of the server. They name no project, key or content."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, Max, Min, Q, QuerySet, Sum
from django.db.models.functions import Now
from django.utils import timezone

from responses_api.models import Counter, Process, Response
from responses_api.models.store.response import ACTIVE

from .models import LiveModel, get_live_workers
from .store_totals import get_store_totals
from .stored_events import stored_events


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """A live worker process."""

    host: str
    pid: int
    models: tuple[str, ...]
    slots: int
    running: int
    background_running: int
    """The background jobs among the running ones."""
    waiting: int
    step_seconds: float
    """Age of the engine's current step, at the last heartbeat; 0 between steps."""
    started_at: datetime
    heartbeat_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """Totals over the server's processes. ``counts`` maps series (`counting.py`) to their counts."""

    uptime_seconds: int
    running: int
    waiting: int
    background_running: int
    """The background jobs among the running requests."""
    background_waiting: int
    """The background jobs among the waiting requests."""
    events: int
    """Stored events of background jobs."""
    event_bytes: int
    readers: int
    """Clients that wait for a response or stream one, by the last heartbeats of the web processes."""
    workers: tuple[WorkerStatus, ...]
    web_processes: int
    prompt_cache_bytes: int
    """Bytes of prompts that all workers have cached in memory, by their last heartbeats."""
    prompt_cache_disk_bytes: int
    """The same, on the disks of their hosts."""
    assembly_bytes: int
    """Bytes of histories that all processes are reading, by their last heartbeats."""
    models: tuple[LiveModel, ...]
    store_entries: int
    store_bytes: int
    counts: dict[str, float]


def server_status() -> ServerStatus:
    """The current figures. Running and waiting requests come from the rows, which are newer than the heartbeats."""
    live = Process.objects.filter(heartbeat_at__gt=Now() - timedelta(seconds=settings.RESPONSES_LEASE_SECONDS))
    workers, served = worker_statuses(), get_live_workers()
    entries, size = store_size()
    events, event_bytes = stored_events()
    is_background = Q(background=True)
    active = Response.objects.filter(status__in=ACTIVE).aggregate(
        all=Count("pk"), background=Count("pk", filter=is_background)
    )
    # The requests of a worker that is not live count as waiting.
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
        prompt_cache_bytes=live.aggregate(bytes=Sum("prompt_cache_bytes"))["bytes"] or 0,
        prompt_cache_disk_bytes=prompt_cache_disk_bytes(live),
        assembly_bytes=assembly_bytes(live),
        models=(*served.models, *served.too_large),
        store_entries=entries,
        store_bytes=size,
        counts=dict(Counter.objects.values_list("name", "value")),
    )


def assembly_bytes(live: QuerySet[Process]) -> int:
    """The bytes of histories being read; a process that is both web and worker has two rows with the same figure."""
    by_process = live.order_by().values("host", "pid").annotate(bytes=Max("assembly_bytes"))
    return sum(row["bytes"] for row in by_process)


def prompt_cache_disk_bytes(live: QuerySet[Process]) -> int:
    """The bytes of prompts on disks; the workers of a host share a directory, and each knows its size."""
    by_host = live.order_by().values("host").annotate(bytes=Max("prompt_cache_disk_bytes"))
    return sum(row["bytes"] for row in by_host)


def worker_statuses() -> tuple[WorkerStatus, ...]:
    """The workers whose last heartbeat is not older than a lease. Of the requests that a worker owns for a model, as
    many count as running as the model has slots, interactive requests before background jobs.
    """
    limit = Now() - timedelta(seconds=settings.RESPONSES_LEASE_SECONDS)
    owned = owned_by_workers()
    workers = []
    for process in Process.objects.filter(kind=Process.Kind.WORKER, heartbeat_at__gt=limit).order_by("started_at"):
        names = tuple(model["name"] for model in process.served_models if not model.get("refusal"))
        requests = owned.get(process.pk, [])
        slots = process.slots // max(1, len(names))
        running = sum(min(interactive + background, slots) for interactive, background in requests)
        workers.append(
            WorkerStatus(
                host=process.host,
                pid=process.pid,
                models=names,
                slots=process.slots,
                running=running,
                background_running=running - sum(min(interactive, slots) for interactive, _ in requests),
                waiting=sum(map(sum, requests)) - running,
                step_seconds=process.step_seconds,
                started_at=process.started_at,
                heartbeat_at=process.heartbeat_at,
            )
        )
    return tuple(workers)


def owned_by_workers() -> dict[str, list[tuple[int, int]]]:
    """For each worker, and each model of it, the numbers of interactive requests and of background jobs."""
    is_background = Q(background=True)
    owned: dict[str, list[tuple[int, int]]] = {}
    for worker, interactive, background in (
        Response.objects.filter(status__in=ACTIVE)
        .exclude(worker="")
        .order_by()
        .values("worker", "model")
        .annotate(interactive=Count("pk", filter=~is_background), jobs=Count("pk", filter=is_background))
        .values_list("worker", "interactive", "jobs")
    ):
        owned.setdefault(worker, []).append((interactive, background))
    return owned


def store_size() -> tuple[int, int]:
    """The number of stored responses, and the bytes of all responses, active ones included, items and conversations."""
    totals = get_store_totals()
    running = Response.objects.filter(status__in=ACTIVE).aggregate(size=Sum("size"))["size"] or 0
    return totals.responses, totals.response_bytes + totals.conversation_bytes + running
