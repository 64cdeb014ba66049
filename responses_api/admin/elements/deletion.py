"""Deletion by services, with a short confirmation."""

from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.actions import delete_selected
from django.contrib.admin.utils import model_ngettext
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy

from .lists import List

AT_ONCE = 500
LISTED = 20

Deletion = tuple[list[Any], dict[str, int], set[Any], list[Any]]


class DeletedByServices(List):
    """A list whose rows are deleted by :meth:`remove`. Rows that may not be deleted stay, and the page says so."""

    actions: tuple[str, ...] | None = ("delete_selected",)
    refusal = "can't be deleted."

    def deletable(self, rows: QuerySet) -> QuerySet:
        """The rows that may be deleted."""
        return rows

    def remove(self, rows: Iterable[Any]) -> None:
        """Delete the rows."""
        raise NotImplementedError

    def consequences(self, rows: list[Any]) -> Iterator[tuple[str, int]]:
        """What is deleted with the rows: names and numbers."""
        yield from ()

    def warnings(self, rows: list[Any]) -> list[str]:
        """Sentences that the confirmation shows."""
        return []

    @admin.action(permissions=["delete"], description=gettext_lazy("Delete selected %(verbose_name_plural)s"))
    def delete_selected(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse | None:
        """The action of the list."""
        chosen = queryset.count()
        if chosen > AT_ONCE:
            self.message_user(request, f"Select at most {AT_ONCE} at once.", messages.WARNING)
            return None
        rows = self.deletable(queryset)
        refused = chosen - rows.count()
        if refused:
            text = f"{refused} {model_ngettext(self.opts, refused)} {self.refusal}"
            self.message_user(request, text, messages.WARNING)
        return delete_selected(self, request, rows) if refused < chosen else None

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Deletion:
        """The content of the confirmation. Django's method would load every row that is deleted with these."""
        rows = list(objs)
        warnings = [format_html('<strong class="caution">{}</strong>', sentence) for sentence in self.warnings(rows)]
        shown: list[Any] = [*warnings, *(str(row) for row in rows[:LISTED])]
        if len(rows) > LISTED:
            shown.append(f"… and {len(rows) - LISTED} more")
        counts = {str(model_ngettext(self.opts, len(rows))): len(rows), **dict(self.consequences(rows))}
        return shown, counts, set(), []

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        self.remove([obj])

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet) -> None:
        self.remove(list(queryset))
