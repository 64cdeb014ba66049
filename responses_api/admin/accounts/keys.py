"""API keys: created and shown once, renamed, revoked, and deleted once they are revoked."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.cache import patch_cache_control
from django.utils.safestring import SafeString

from responses_api.admin.elements.deletion import DeletedByServices
from responses_api.admin.elements.display import NOTHING, badge, code, timestamp, two_lines
from responses_api.admin.elements.filters import KeyStateFilter
from responses_api.admin.elements.lists import SavedByServices
from responses_api.admin.site import site
from responses_api.models import ApiKey, Project, User
from responses_api.selectors.models import get_live_workers
from responses_api.services.accounts.create_key import create_key, revoke_key
from responses_api.services.accounts.delete_key import delete_keys
from responses_api.services.accounts.edit_key import edit_key
from responses_api.web.front_page import base_url_of, example_model
from responses_api.web.quickstart import quickstart


class KeyForm(forms.ModelForm):
    """A key's name and expiry; for a new key also its project and owner."""

    def clean_expires_at(self) -> Any:
        expires_at = self.cleaned_data["expires_at"]
        if expires_at is not None and "expires_at" in self.changed_data and expires_at <= timezone.now():
            raise forms.ValidationError("This time has passed. To end a key at once, revoke it.")
        return expires_at


def last_keys_warning(remaining: QuerySet[ApiKey], going: QuerySet[ApiKey]) -> list[str]:
    """A warning when deleting keys would leave no valid key."""
    if remaining.exists() or not going.exists():
        return []
    return ["No key would be left, and every request needs one."]


@admin.register(ApiKey, site=site)
class ApiKeyAdmin(SavedByServices, DeletedByServices):
    """The secret is only in the response to the form that creates a key."""

    form = KeyForm
    list_display = ("name", "identifier", "state", "belongs_to", "made", "last_used")
    list_select_related = ("project", "owner")
    list_filter = (KeyStateFilter, "project")
    search_fields = ("name", "prefix", "project__name", "owner__username")
    actions: tuple[str, ...] | None = ("revoke_selected", "delete_selected")
    refusal = "left alone: only revoked keys can be deleted."
    change_form_template = "admin/responses_api/apikey/change_form.html"

    @admin.display(description="key", ordering="prefix")
    def identifier(self, key: ApiKey) -> SafeString:
        return code(f"{key.prefix}…")

    @admin.display(description="state")
    def state(self, key: ApiKey) -> SafeString:
        if key.revoked_at is not None:
            return badge("revoked", "bad")
        return badge("active", "good") if key.is_usable() else badge("expired", "warn")

    @admin.display(description="project and owner", ordering="project__name")
    def belongs_to(self, key: ApiKey) -> SafeString:
        return two_lines(str(key.project), "" if key.owner is None else key.owner.get_username())

    @admin.display(description="made", ordering="created_at")
    def made(self, key: ApiKey) -> SafeString:
        until = "" if key.expires_at is None else f"until {timestamp(key.expires_at)}"
        return two_lines(timestamp(key.created_at), until)

    @admin.display(description="last used", ordering="last_used_at")
    def last_used(self, key: ApiKey) -> str:
        return NOTHING if key.last_used_at is None else timestamp(key.last_used_at)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        if obj is None:
            return ("name", "project", "owner", "expires_at")
        return (
            "name", "expires_at", "identifier", "state", "project", "owner", "created_at", "last_used_at", "revoked_at",
        )  # fmt: skip

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return () if obj is None else self.get_fields(request, obj)[2:]

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """A choice of projects and users; of the buttons beside it, only the one that adds a project."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        widget = getattr(field, "widget", None)
        if isinstance(widget, RelatedFieldWidgetWrapper):
            widget.can_add_related = widget.can_add_related and db_field.name == "project"
            widget.can_change_related = widget.can_delete_related = widget.can_view_related = False
        return field

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """The signed-in user, and the project when there is only one."""
        initial: dict[str, Any] = {"owner": request.user.pk, **super().get_changeform_initial_data(request)}
        projects = list(Project.objects.values_list("pk", flat=True)[:2])
        if len(projects) == 1:
            initial.setdefault("project", projects[0])
        return initial

    def create(self, request: HttpRequest, form: forms.ModelForm) -> ApiKey:
        values = form.cleaned_data
        owner = values.get("owner")
        key, secret = create_key(
            project=values["project"],
            name=values["name"],
            owner=owner if isinstance(owner, User) else None,
            expires_at=values["expires_at"],
        )
        key.secret = secret  # type: ignore[attr-defined]  # for response_add, with this object
        return key

    def edit(self, request: HttpRequest, form: forms.ModelForm) -> ApiKey:
        return edit_key(key=form.instance, name=form.cleaned_data["name"], expires_at=form.cleaned_data["expires_at"])

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """Answer the form with the secret itself.

        For a redirect, the secret would have to be in a cookie, a URL or the store. The page's script replaces its URL,
        so that a reload shows the key's page and doesn't send the form again.
        """
        base_url = base_url_of(request)
        context = {
            **self.admin_site.each_context(request),
            "title": "Your new API key",
            "opts": self.opts,
            "key": obj,
            "secret": obj.secret,
            "snippets": quickstart(base_url, example_model(get_live_workers()), True, key=obj.secret),
            "key_url": reverse("admin:responses_api_apikey_change", args=(obj.pk,)),
        }
        response = TemplateResponse(request, "admin/responses_api/apikey/created.html", context)
        patch_cache_control(response, no_store=True)
        return response

    # --- revoking ----------------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.revoke_view)
        return [path("<int:pk>/revoke/", view, name="responses_api_apikey_revoke"), *super().get_urls()]

    def revoke_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Ask for confirmation, then revoke."""
        key = self.get_queryset(request).select_related("project").filter(pk=pk).first()
        if key is None:
            raise Http404("There is no such key.")
        if not self.has_change_permission(request, key):
            raise PermissionDenied
        if request.method == "POST":
            self._revoke(request, key)
            self.message_user(request, f"The key “{key.name}” is revoked.", messages.SUCCESS)
            return HttpResponseRedirect(reverse("admin:responses_api_apikey_change", args=(pk,)))
        context = {**self.admin_site.each_context(request), "title": "Revoke API key", "opts": self.opts, "key": key}
        return TemplateResponse(request, "admin/responses_api/apikey/revoke.html", context)

    @admin.action(permissions=["change"], description="Revoke selected API keys")
    def revoke_selected(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        keys = list(queryset.filter(revoked_at=None))
        for key in keys:
            self._revoke(request, key)
        self.message_user(request, f"Revoked {len(keys)} API key{'' if len(keys) == 1 else 's'}.", messages.SUCCESS)

    def _revoke(self, request: HttpRequest, key: ApiKey) -> None:
        if key.revoked_at is None:
            revoke_key(key=key)
            self.log_change(request, key, "Revoked.")

    # --- deleting ----------------------------------------------------------------------------------------------------

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and (obj is None or obj.revoked_at is not None)

    def deletable(self, rows: QuerySet) -> QuerySet:
        return rows.exclude(revoked_at=None)

    def remove(self, rows: Iterable[Any]) -> None:
        delete_keys(keys=rows)

    def warnings(self, rows: list[Any]) -> list[str]:
        chosen = [row.pk for row in rows]
        return last_keys_warning(ApiKey.objects.exclude(pk__in=chosen), ApiKey.objects.filter(pk__in=chosen))
