"""The models that workers serve or have served."""

from django.contrib import admin
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from responses_api.admin.elements.display import NOTHING, badge, code, file_size
from responses_api.admin.elements.lists import ReadOnlyList
from responses_api.admin.site import site
from responses_api.models import ServedModel
from responses_api.protocol.objects.model import State
from responses_api.selectors.models import get_live_workers

STATES: dict[State | None, tuple[str, str]] = {
    "active": ("in use", "good"),
    "idle": ("loaded", "good"),
    "loading": ("loading", "good"),
    "unloaded": ("loaded on demand", "quiet"),
    "too_large": ("too large", "bad"),
    None: ("not served", "quiet"),
}


@admin.register(ServedModel, site=site)
class ServedModelAdmin(ReadOnlyList):
    """Read-only: workers write it."""

    list_display = ("name", "state", "known_as", "context", "weights", "size", "last_seen_at")
    search_fields = ("name", "source")
    fields = (
        "name",
        "state",
        "known_as",
        "context",
        "weights",
        "size",
        "source",
        "checksum",
        "first_seen_at",
        "last_seen_at",
    )
    readonly_fields = ("state", "known_as", "context", "size", "checksum")

    @admin.display(description="state")
    def state(self, row: ServedModel) -> SafeString:
        live = get_live_workers()
        state = next((model.state for model in (*live.models, *live.too_large) if model.name == row.name), None)
        return badge(*STATES[state])

    @admin.display(description="also known as")
    def known_as(self, row: ServedModel) -> SafeString | str:
        return format_html_join(" ", '<code class="id">{}</code>', ((name,) for name in row.aliases)) or NOTHING

    @admin.display(description="context", ordering="context_length")
    def context(self, row: ServedModel) -> str:
        return f"{row.context_length:,} tokens"

    @admin.display(ordering="size_bytes")
    def size(self, row: ServedModel) -> str:
        return file_size(row.size_bytes) if row.size_bytes else NOTHING

    @admin.display(description="digest")
    def checksum(self, row: ServedModel) -> SafeString:
        return code(row.digest)
