"""Projects: created, renamed, and deleted with everything that belongs to them."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib import admin
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.safestring import SafeString

from responses_api.admin.elements.deletion import DeletedByServices
from responses_api.admin.elements.display import code
from responses_api.admin.elements.lists import SavedByServices
from responses_api.admin.elements.paging import COUNTED
from responses_api.admin.site import site
from responses_api.models import ApiKey, Item, Project, Response, UsageRecord
from responses_api.services.accounts.create_project import create_project
from responses_api.services.accounts.delete_project import delete_project
from responses_api.services.accounts.edit_project import edit_project

from .keys import last_keys_warning


@admin.register(Project, site=site)
class ProjectAdmin(SavedByServices, DeletedByServices):
    """The page of projects, the unit of isolation."""

    list_display = ("name", "identifier", "storing", "keys", "created_at")
    search_fields = ("name", "public_id__startswith")
    date_hierarchy = None
    fields = ("name", "store_default", "identifier", "created_at")
    readonly_fields = ("identifier", "created_at")
    change_form_template = "admin/responses_api/project/change_form.html"

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("name", "store_default") if obj is None else self.fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Project]:
        keys = (
            ApiKey.objects.filter(project=OuterRef("pk"), revoked_at=None)
            .order_by()
            .values("project")
            .annotate(number=Count("pk"))
            .values("number")
        )
        return (
            super().get_queryset(request).annotate(live_keys=Coalesce(Subquery(keys, output_field=IntegerField()), 0))
        )

    @admin.display(description="id")
    def identifier(self, row: Project) -> SafeString:
        return code(row.public_id)

    @admin.display(description="stores responses", ordering="store_default")
    def storing(self, row: Project) -> str:
        return {None: "as the server does", True: "yes", False: "only when asked"}[row.store_default]

    @admin.display(description="keys", ordering="live_keys")
    def keys(self, row: Any) -> int:
        return int(row.live_keys)

    def create(self, request: HttpRequest, form: ModelForm) -> Project:
        return create_project(name=form.cleaned_data["name"], store_default=form.cleaned_data["store_default"])

    def edit(self, request: HttpRequest, form: ModelForm) -> Project:
        return edit_project(
            project=form.instance, name=form.cleaned_data["name"], store_default=form.cleaned_data["store_default"]
        )

    def remove(self, rows: Iterable[Any]) -> None:
        for project in rows:
            delete_project(project=project)

    def consequences(self, rows: list[Any]) -> Iterator[tuple[str, int]]:
        """The numbers of rows that would be deleted, counted up to the limit of lists."""
        kinds: tuple[tuple[str, type[Any]], ...] = (
            ("API keys", ApiKey),
            ("responses", Response),
            ("items", Item),
            ("usage records", UsageRecord),
        )
        for name, model in kinds:
            number = model.objects.filter(project__in=rows).order_by()[: COUNTED + 1].count()
            yield (f"{name} (at least)" if number > COUNTED else name), min(number, COUNTED)

    def warnings(self, rows: list[Any]) -> list[str]:
        sentences = [
            "All keys, responses, items and usage records of these projects go with them, and can't be brought back."
        ]
        sentences += last_keys_warning(
            ApiKey.objects.exclude(project__in=rows), ApiKey.objects.filter(project__in=rows)
        )
        return sentences
