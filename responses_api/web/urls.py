"""The URLs of the pages."""

from django.urls import path
from django.views.generic import RedirectView

from .front_page import front_page
from .reference_page import reference_page

urlpatterns = [
    path("", front_page, name="front-page"),
    path("docs", reference_page, name="reference"),
    # Django appends no slash, since the API's paths have none; people type this path without it.
    path("admin", RedirectView.as_view(pattern_name="admin:index")),
]
