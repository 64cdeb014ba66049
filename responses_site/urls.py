"""The site's addresses."""

from django.urls import include, path

from responses_api.admin.site import site
from responses_site import health

urlpatterns = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("admin/", site.urls),
    path("", include("responses_api.web.urls")),
    path("", include("responses_api.api.urls")),
]

handler400 = "responses_api.api.exceptions.bad_request"
handler404 = "responses_api.api.exceptions.unknown_route"
handler500 = "responses_api.api.exceptions.server_error"
