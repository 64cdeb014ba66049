"""What all our admin pages have in common."""

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse

from .paging import CappedPaginator


class List(admin.ModelAdmin):
    """A list whose number of queries does not depend on how much it shows."""

    list_per_page = 50
    list_max_show_all = 200
    show_full_result_count = False
    paginator = CappedPaginator


class ReadOnlyList(List):
    """What the server wrote, and nobody edits."""

    actions: tuple[str, ...] | None = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class SavedByServices(List):
    """A form whose writes are made by services, as those of the API and of the commands are."""

    def create(self, request: HttpRequest, form: ModelForm) -> Model:
        """Make the object that a valid form describes."""
        raise NotImplementedError

    def edit(self, request: HttpRequest, form: ModelForm) -> Model:
        """Store what a valid form changes."""
        raise NotImplementedError

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """One way to save is enough for forms this short."""
        buttons = {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().changeform_view(request, object_id, form_url, {**buttons, **(extra_context or {})})

    def save_form(self, request: HttpRequest, form: ModelForm, change: bool) -> Model:
        return self.edit(request, form) if change else self.create(request, form)

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:
        """The service has written it."""

    def save_related(self, request: Any, form: Any, formsets: Any, change: Any) -> None:
        """Nothing of ours has related rows in its form."""
