"""Base classes of the admin's pages."""

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse

from .paging import CappedPaginator


class List(admin.ModelAdmin):
    """A list whose number of queries does not depend on the number of rows."""

    list_per_page = 50
    list_max_show_all = 200
    show_full_result_count = False
    paginator = CappedPaginator


class ReadOnlyList(List):
    """A list of rows that the server writes and that nobody edits."""

    actions: tuple[str, ...] | None = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class SavedByServices(List):
    """A form that writes through services, as the API and the commands do."""

    def create(self, request: HttpRequest, form: ModelForm) -> Model:
        """Create the object of a valid form."""
        raise NotImplementedError

    def edit(self, request: HttpRequest, form: ModelForm) -> Model:
        """Store the changes of a valid form."""
        raise NotImplementedError

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show one save button only: the forms are short."""
        buttons = {"show_save_and_add_another": False, "show_save_and_continue": False}
        return super().changeform_view(request, object_id, form_url, {**buttons, **(extra_context or {})})

    def save_form(self, request: HttpRequest, form: ModelForm, change: bool) -> Model:
        return self.edit(request, form) if change else self.create(request, form)

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm, change: bool) -> None:
        """Do nothing: the service has written the object."""

    def save_related(self, request: Any, form: Any, formsets: Any, change: Any) -> None:
        """Do nothing: the forms have no related rows."""
