"""Accounting: one row per generation, without content."""

from django.contrib import admin
from django.utils.safestring import SafeString

from responses_api.admin.elements.display import NOTHING, origin_of, timestamp, two_lines
from responses_api.admin.elements.filters import ModelFilter
from responses_api.admin.elements.lists import ReadOnlyList
from responses_api.admin.site import site
from responses_api.models import UsageRecord

from .responses import status_badge


@admin.register(UsageRecord, site=site)
class UsageAdmin(ReadOnlyList):
    """Read-only: usage is the basis of billing."""

    list_display = ("ended", "origin", "state", "tokens", "time")
    sortable_by = ("ended",)
    list_select_related = ("project", "key")
    list_filter = ("created_at", "project", ModelFilter, "status")
    date_hierarchy = "created_at"
    search_fields = ("response_id__startswith", "project__name__istartswith", "key__name__istartswith")
    search_help_text = "The beginning of a response's id, or of a project's or key's name."
    fields = (
        "response_id", "project", "key", "model", "state", "created_at", ("input_tokens", "cached_tokens"),
        ("output_tokens", "reasoning_tokens"), "first_token", "duration",
    )  # fmt: skip
    readonly_fields = ("state", "first_token", "duration")

    @admin.display(description="ended", ordering="created_at")
    def ended(self, row: UsageRecord) -> str:
        return timestamp(row.created_at)

    @admin.display(description="model and origin")
    def origin(self, row: UsageRecord) -> SafeString:
        return two_lines(row.model, origin_of(row))

    @admin.display(description="status")
    def state(self, row: UsageRecord) -> SafeString:
        return status_badge(row.status)

    @admin.display(description="tokens")
    def tokens(self, row: UsageRecord) -> SafeString:
        return two_lines(f"{row.input_tokens:,} in, {row.output_tokens:,} out", f"{row.cached_tokens:,} cached")

    @admin.display(description="time")
    def time(self, row: UsageRecord) -> SafeString:
        return two_lines(self.duration(row), f"first token {self.first_token(row)}")

    @admin.display(description="first token")
    def first_token(self, row: UsageRecord) -> str:
        return NOTHING if row.first_token_ms is None else f"{row.first_token_ms:,} ms"

    @admin.display(description="duration")
    def duration(self, row: UsageRecord) -> str:
        return f"{row.duration_ms:,} ms"
