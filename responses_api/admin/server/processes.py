"""The server's processes, and which of them are live."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from responses_api.admin.elements.display import NOTHING, badge, json_block, timestamp
from responses_api.admin.elements.filters import LivenessFilter
from responses_api.admin.elements.lists import ReadOnlyList
from responses_api.admin.overview import with_liveness
from responses_api.admin.site import site
from responses_api.models import Process


@admin.register(Process, site=site)
class ProcessAdmin(ReadOnlyList):
    """Read-only: each process writes its own row, and removes it when it shuts down."""

    list_display = ("name", "kind", "state", "models", "slots", "running", "waiting", "heard")
    list_filter = (LivenessFilter, "kind")
    search_fields = ("id__startswith", "host__icontains")
    fields = (
        "id",
        "kind",
        "state",
        ("host", "pid"),
        ("slots", "running", "waiting"),
        "started_at",
        "heartbeat_at",
        "served",
    )
    readonly_fields = ("state", "served")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Process]:
        return with_liveness(super().get_queryset(request))

    @admin.display(description="process", ordering="host")
    def name(self, row: Process) -> str:
        return f"{row.host}:{row.pid}"

    @admin.display(description="state", ordering="heartbeat_at")
    def state(self, row: Any) -> SafeString:
        return badge("live", "good") if row.live else badge("silent", "bad")

    @admin.display(description="models")
    def models(self, row: Process) -> SafeString | str:
        names = ((model.get("name"),) for model in row.served_models if isinstance(model, dict))
        return format_html_join("", '<span class="second">{}</span>', names) or NOTHING

    @admin.display(description="last heard of", ordering="heartbeat_at")
    def heard(self, row: Process) -> str:
        return timestamp(row.heartbeat_at)

    @admin.display(description="served models")
    def served(self, row: Process) -> SafeString:
        return json_block(row.served_models)
