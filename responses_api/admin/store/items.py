"""Items: the messages and calls that conversations are made of."""

from typing import Any

from django.contrib import admin
from django.db.models import Max, QuerySet
from django.db.models.functions import Length, Substr
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from responses_api.admin.elements.display import NOTHING, badge, file_size, json_block, timestamp, two_lines
from responses_api.admin.elements.excerpt import HEAD, excerpt, role_of
from responses_api.admin.elements.filters import ItemTypeFilter
from responses_api.admin.elements.lists import ReadOnlyList
from responses_api.admin.site import site
from responses_api.models import Item, Response

from .bubbles import BubbleMaker
from .conversation import HEAD as LONG_HEAD
from .conversation import WHOLE, Place

SEARCHED = 100_000
RESPONSES = 20


@admin.register(Item, site=site)
class ItemAdmin(ReadOnlyList):
    """Read-only: items are immutable."""

    list_display = ("text", "kind", "project", "made")
    list_select_related = ("project",)
    sortable_by = ("text",)
    list_filter = (ItemTypeFilter, "project")
    search_fields = ("wire_id",)
    search_help_text = f"The beginning of an id, or words that one of the newest {SEARCHED:,} items contains."
    fields = ("wire_id",)
    change_form_template = "admin/responses_api/item/item.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Item]:
        rows = super().get_queryset(request).defer("payload")
        return rows.annotate(head=Substr("payload", 1, HEAD), characters=Length("payload"))

    def get_search_results(self, request: HttpRequest, queryset: QuerySet, search_term: str) -> tuple[QuerySet, bool]:
        """Search words in a limited number of rows, since there is no index for it."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if " " not in term and term.partition("_")[0] in ("msg", "fc", "fco", "rs", "ctc", "ctco", "cmp"):
            return queryset.filter(wire_id__startswith=term), False
        newest = Item.objects.aggregate(newest=Max("pk"))["newest"] or 0
        queryset = queryset.filter(pk__gt=newest - SEARCHED)
        for word in term.split():
            queryset = queryset.filter(payload__icontains=word)
        return queryset, False

    @admin.display(description="item", ordering="pk")
    def text(self, row: Any) -> SafeString:
        words = excerpt(row.head, 120) or NOTHING
        return format_html('<span class="asked">{}</span><code class="id">{}</code>', words, shortened(row.wire_id))

    @admin.display(description="type")
    def kind(self, row: Any) -> SafeString:
        role = role_of(row.head)
        return badge(f"{row.type} · {role}" if role else row.type, "quiet")

    @admin.display(description="stored")
    def made(self, row: Any) -> SafeString:
        return two_lines(timestamp(row.created_at), file_size(row.characters))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = dict(extra_context or {})
        row = None
        if object_id.isdigit():
            rows = Item.objects.select_related("project").defer("payload")
            row = (
                rows.annotate(head=Substr("payload", 1, LONG_HEAD), characters=Length("payload"))
                .filter(pk=object_id)
                .first()
            )
        if row is not None and self.has_view_permission(request, row):
            whole = row.characters <= WHOLE
            payload = row.payload if whole else row.head
            place = Place(item=row.pk, type=row.type, payload=payload, size=row.characters, own=True, is_output=False)
            context |= {
                "row": row,
                "bubble": BubbleMaker().from_place(place),
                "raw": raw(row) if whole else None,
                "size": file_size(row.characters),
                "responses": Response.objects.filter(turn__entries__item=row).only("pk", "public_id", "status")[
                    :RESPONSES
                ],
                "title": "Item",
                "subtitle": None,
            }
        return super().change_view(request, object_id, form_url, context)


def shortened(wire_id: str) -> str:
    """An id as lists show it."""
    return wire_id if len(wire_id) <= 24 else wire_id[:22] + "…"


def raw(row: Item) -> SafeString:
    """The item as JSON; the stored text when it can't be parsed."""
    try:
        return json_block(row.wire())
    except ValueError:
        return format_html('<pre class="json">{}</pre>', row.payload)
