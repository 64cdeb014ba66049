"""The admin site: its name, the groups of its pages, and the overview on its first page."""

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from responses_api.admin.elements.display import NOTHING

from .overview import get_overview, latest_responses
from .sign_in import Busy, too_busy

GROUPS = (
    ("Conversations", ("Response", "Item")),
    ("Access", ("Project", "ApiKey", "User", "Group", "AccessAttempt")),
    ("Serving", ("ServedModel", "Process")),
    ("Accounting", ("UsageRecord",)),
)


class ResponsesAdminSite(AdminSite):
    """The one admin site of the server."""

    site_header = "mlx-responses"
    site_title = "mlx-responses"
    index_title = "Overview"
    empty_value_display = NOTHING

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Group the pages by subject, not by the Django app that defines them."""
        apps: list[Any] = super().get_app_list(request, app_label)
        if app_label is not None:
            return apps
        models = {model["object_name"]: model for app in apps for model in app["models"]}
        groups = []
        for name, members in GROUPS:
            registered = [models.pop(member) for member in members if member in models]
            if registered:
                label = name.lower()
                url = f"{reverse('admin:index', current_app=self.name)}#{label}"
                groups.append(
                    {"name": name, "app_label": label, "app_url": url, "has_module_perms": True, "models": registered}
                )
        return groups

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Django's page, or :func:`too_busy`."""
        try:
            return super().login(request, extra_context)
        except Busy:
            return too_busy(request)

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """The overview. Figures and conversations are shown to users who may see responses."""
        context = dict(extra_context or {})
        if request.user.has_perm("responses_api.view_response"):
            context |= {"overview": get_overview(), "latest": latest_responses()}
        return super().index(request, context)


site = ResponsesAdminSite(name="admin")
