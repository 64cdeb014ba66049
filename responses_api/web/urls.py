"""The pages' addresses."""

from django.urls import path
from django.views.generic import RedirectView

from .front_page import front_page
from .reference_page import reference_page

urlpatterns = [
    path("", front_page, name="front-page"),
    path("docs", reference_page, name="reference"),
    # Addresses of the API have no slash at their end, so Django adds none; people type this one without.
    path("admin", RedirectView.as_view(pattern_name="admin:index")),
]
