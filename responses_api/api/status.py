"""`GET /status` and `GET /metrics`: for people and for Prometheus. Both need a key where keys exist."""

from django.conf import settings
from django.http import HttpResponse
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from rest_framework.request import Request
from rest_framework.response import Response

from responses_api import counting
from responses_api.models import Status
from responses_api.protocol import objects
from responses_api.selectors.server_status import ServerStatus, server_status
from responses_api.services.processes.publish_counts import publish_counts

from .endpoint import Endpoint
from .metrics import metrics_text

DIALECTS = ["responses", *(["chat_completions"] if settings.RESPONSES_CHAT else [])]
# No other response is ever stored as cancelled.
CANCELLED = counting.series(counting.GENERATIONS.name, status=Status.CANCELLED.value)


def current_status() -> ServerStatus:
    """The figures, with this process's own up to date."""
    publish_counts()
    return server_status()


class StatusView(Endpoint):
    """Figures of running, waiting and stored responses."""

    def get(self, request: Request) -> Response:
        return Response(status_object(current_status()))


class MetricsView(Endpoint):
    """Prometheus families."""

    def get(self, request: Request) -> HttpResponse:
        text = metrics_text(current_status(), version=settings.RESPONSES_VERSION)
        return HttpResponse(text, content_type=CONTENT_TYPE_PLAIN_0_0_4)


def status_object(status: ServerStatus) -> objects.ServerStatus:
    """The figures as JSON."""

    def counted(series: str) -> int:
        return int(status.counts.get(series, 0))

    return {
        "object": "server.status",
        "version": settings.RESPONSES_VERSION,
        "uptime_seconds": status.uptime_seconds,
        "dialects": DIALECTS,
        "running": status.running,
        "waiting": status.waiting,
        "background": {
            "running": status.background_running,
            "waiting": status.background_waiting,
            "events": status.events,
            "event_bytes": status.event_bytes,
            "recovered": counted(counting.JOBS_RECOVERED.name),
            "cancelled": counted(CANCELLED),
        },
        "readers": status.readers,
        "web_processes": status.web_processes,
        "assembly_bytes": status.assembly_bytes,
        "workers": [
            {
                "host": worker.host,
                "pid": worker.pid,
                "models": list(worker.models),
                "slots": worker.slots,
                "running": worker.running,
                "waiting": worker.waiting,
                "step_seconds": round(worker.step_seconds, 3),
                "started_at": int(worker.started_at.timestamp()),
            }
            for worker in status.workers
        ],
        "models": [
            {
                "id": model.name,
                "aliases": list(model.aliases),
                "context_length": model.context_length,
                "state": model.state,
                "memory_bytes": model.memory_bytes,
                "pinned": model.is_pinned,
            }
            for model in status.models
        ],
        "speculation": {
            "drafted_tokens": counted(counting.DRAFTED_TOKENS.name),
            "accepted_tokens": counted(counting.ACCEPTED_TOKENS.name),
        },
        "prompt_cache": {
            "memory": cache_tier(status, "memory", size=status.prompt_cache_bytes),
            "disk": cache_tier(status, "disk", size=status.prompt_cache_disk_bytes),
        },
        "store": {
            "entries": status.store_entries,
            "bytes": status.store_bytes,
            "hits": counted(counting.STORE_HITS.name),
            "misses": counted(counting.STORE_MISSES.name),
            "writes": counted(counting.STORE_WRITES.name),
            "evictions": counted(counting.STORE_EVICTIONS.name),
            "expiries": counted(counting.STORE_EXPIRIES.name),
            "refusals": counted(counting.STORE_REFUSALS.name),
        },
    }


def cache_tier(status: ServerStatus, tier: str, *, size: int) -> objects.CacheTierFigures:
    """The figures of one tier of the cache of prompts."""

    def counted(family: counting.Family) -> int:
        return int(status.counts.get(counting.series(family.name, tier=tier), 0))

    return {
        "bytes": size,
        "hits": counted(counting.PROMPT_CACHE_HITS),
        "misses": counted(counting.PROMPT_CACHE_MISSES),
        "tokens": counted(counting.PROMPT_CACHE_TOKENS),
        "evictions": counted(counting.PROMPT_CACHE_EVICTIONS),
    }
