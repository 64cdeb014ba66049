"""Stored and active responses, each with its conversation."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from responses_api.admin.elements.deletion import AT_ONCE, DeletedByServices
from responses_api.admin.elements.display import NOTHING, badge, origin_of, timestamp, two_lines
from responses_api.admin.elements.excerpt import excerpt, with_opening_words
from responses_api.admin.elements.filters import ModelFilter
from responses_api.admin.elements.lists import ReadOnlyList
from responses_api.admin.site import site
from responses_api.caller import Caller
from responses_api.errors import ApiError
from responses_api.models import Response, Status
from responses_api.models.store.response import ACTIVE
from responses_api.services.jobs.cancel_response import request_cancellation
from responses_api.services.store.delete_response import remove_responses

from .response_page import get_response_page

TONES = {
    Status.COMPLETED: "good",
    Status.IN_PROGRESS: "busy",
    Status.QUEUED: "busy",
    Status.INCOMPLETE: "warn",
    Status.FAILED: "bad",
    Status.CANCELLED: "quiet",
}


def status_badge(status: str) -> SafeString:
    """A response's status, coloured."""
    return badge(status.replace("_", " "), TONES.get(Status(status), "quiet") if status in Status else "quiet")


@admin.register(Response, site=site)
class ResponseAdmin(DeletedByServices, ReadOnlyList):
    """Read-only; deletes through the service that the API uses."""

    list_display = ("asked", "state", "origin", "made")
    sortable_by = ("made",)
    list_select_related = ("project", "key")
    list_filter = ("status", "created_at", ModelFilter, "project", "store", "background")
    search_fields = (
        "public_id__startswith",
        "model__istartswith",
        "project__name__istartswith",
        "key__name__istartswith",
    )
    search_help_text = "The beginning of an id, or of a model's, project's or key's name."
    actions: tuple[str, ...] | None = ("delete_selected", "cancel_selected")
    refusal = "left alone: only responses that have ended can be deleted."
    fields = ("public_id",)
    change_form_template = "admin/responses_api/response/conversation.html"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        if obj is not None and obj.is_active:
            return False
        return super(ReadOnlyList, self).has_delete_permission(request, obj)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Response]:
        return with_opening_words(super().get_queryset(request).defer("request", "body"))

    @admin.display(description="conversation")
    def asked(self, row: Any) -> SafeString:
        question = excerpt(row.question, 80) or NOTHING
        return format_html(
            '<span class="asked">{}</span><span class="answered">{}</span><code class="id">{}</code>',
            question,
            excerpt(row.answer, 90),
            row.public_id[:22] + "…",
        )

    @admin.display(description="status")
    def state(self, row: Response) -> SafeString:
        return status_badge(row.status)

    @admin.display(description="model and origin")
    def origin(self, row: Response) -> SafeString:
        return two_lines(row.model, origin_of(row))

    @admin.display(description="created", ordering="pk")
    def made(self, row: Response) -> SafeString:
        tokens = "" if row.input_tokens is None else f"{row.input_tokens:,} in, {row.output_tokens or 0:,} out"
        return two_lines(timestamp(row.created_at), tokens)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        context = dict(extra_context or {})
        row = (
            Response.objects.select_related("project", "key").filter(pk=object_id).first()
            if object_id.isdigit()
            else None
        )
        if row is not None and self.has_view_permission(request, row):
            context |= {
                "row": row,
                "page": get_response_page(row),
                "badge": status_badge(row.status),
                "may_delete": self.has_delete_permission(request, row),
                "title": "Response",
                "subtitle": None,
            }
        return super().change_view(request, object_id, form_url, context)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Cancelling needs the permission to change responses, although nobody can edit one."""
        return request.user.has_perm("responses_api.change_response")

    @admin.action(permissions=["cancel"], description="Cancel selected background responses")
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet) -> None:
        """The action of the list: cancels as the API does, without waiting for the workers."""
        running = queryset.filter(background=True, status__in=ACTIVE)
        selected = queryset.count()
        if selected > AT_ONCE:
            self.message_user(request, f"Select at most {AT_ONCE} at once.", messages.WARNING)
            return
        left_alone = selected - running.count()
        ended = requested = 0
        for row in list(running.select_related("project", "key")):
            try:
                job = request_cancellation(caller=Caller(project=row.project, key=row.key), response_id=row.public_id)
            except ApiError:  # removed meanwhile
                left_alone += 1
                continue
            ended, requested = ended + (not job.is_active), requested + job.is_active
        if ended:
            self.message_user(request, f"Cancelled: {ended}.", messages.SUCCESS)
        if requested:
            text = f"Being cancelled: {requested}. Their workers stop within a few tokens."
            self.message_user(request, text, messages.SUCCESS)
        if left_alone:
            text = f"Left alone: {left_alone}. Only background responses that have not ended can be cancelled."
            self.message_user(request, text, messages.WARNING)

    def deletable(self, rows: QuerySet) -> QuerySet:
        return rows.exclude(status__in=ACTIVE)

    def remove(self, rows: Iterable[Any]) -> None:
        remove_responses([row.pk for row in rows])

    def warnings(self, rows: list[Any]) -> list[str]:
        return ["Responses that continue these keep the whole conversation."]
