"""The figures of the admin's first page, by a small, fixed number of indexed queries."""

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db.models import BooleanField, Case, Count, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Now
from django.utils import timezone

from responses_api.admin.elements.excerpt import with_opening_words
from responses_api.models import Process, Response, UsageRecord
from responses_api.models.store.response import ACTIVE
from responses_api.selectors.models import LiveWorkers, get_live_workers

LATEST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The server's current load, and its usage since midnight UTC."""

    responses: int
    input_tokens: int
    output_tokens: int
    running: int
    waiting: int
    workers: int
    web_processes: int
    live: LiveWorkers

    @property
    def tokens(self) -> int:
        """Input and output tokens of today."""
        return self.input_tokens + self.output_tokens


def is_live() -> Q:
    """The condition of live processes: their last heartbeat is not older than a lease, by the database's clock."""
    return Q(heartbeat_at__gt=Now() - timedelta(seconds=settings.RESPONSES_LEASE_SECONDS))


def with_liveness(processes: QuerySet[Process]) -> QuerySet[Process]:
    """The processes, each with ``live``: whether it is live."""
    live = Case(When(is_live(), then=Value(True)), default=Value(False), output_field=BooleanField())
    return processes.annotate(live=live)


def get_overview() -> Overview:
    """The figures, by three queries besides those of :func:`get_live_workers`."""
    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    usage = UsageRecord.objects.filter(created_at__gte=midnight).aggregate(
        responses=Count("pk"), input=Sum("input_tokens"), output=Sum("output_tokens")
    )
    queue = Response.objects.filter(status__in=ACTIVE).aggregate(
        waiting=Count("pk", filter=Q(worker="")), running=Count("pk", filter=~Q(worker=""))
    )
    processes = Process.objects.filter(is_live()).aggregate(
        workers=Count("pk", filter=Q(kind=Process.Kind.WORKER)), web=Count("pk", filter=Q(kind=Process.Kind.WEB))
    )
    return Overview(
        responses=usage["responses"],
        input_tokens=usage["input"] or 0,
        output_tokens=usage["output"] or 0,
        running=queue["running"],
        waiting=queue["waiting"],
        workers=processes["workers"],
        web_processes=processes["web"],
        live=get_live_workers(),
    )


def latest_responses() -> QuerySet[Response]:
    """The newest responses, with the values that a row of the table shows."""
    rows = Response.objects.select_related("project").defer("request", "body").order_by("-pk")
    return with_opening_words(rows)[:LATEST]
