"""The page at ``/``: what this server is and how to use it. It shows no stored data."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from responses_api.api.origin import names_a_proxy
from responses_api.models import User
from responses_api.selectors.models import LiveWorkers, get_live_workers
from responses_api.services.accounts.authenticate import is_open

from .quickstart import quickstart
from .reading import read_only


@read_only
def front_page(request: HttpRequest) -> HttpResponse:
    """The page. It needs no key and no session, and makes three small queries."""
    live = get_live_workers()
    model = example_model(live)
    needs_key = names_a_proxy(request.headers) or not is_open()
    base_url = base_url_of(request)
    context = {
        "base_url": base_url,
        "live": live,
        "model": model,
        "needs_key": needs_key,
        "has_administrator": User.objects.filter(is_superuser=True, is_active=True).exists(),
        "snippets": quickstart(base_url, model, needs_key),
    }
    response = render(request, "web/front_page.html", context)
    response.headers["Cache-Control"] = "no-cache"
    return response


def base_url_of(request: HttpRequest) -> str:
    """The base URL for an SDK, with the host of the browser's request."""
    return request.build_absolute_uri("/v1")


def example_model(live: LiveWorkers) -> str:
    """A model name for examples: the server's default if it is served, otherwise any served model."""
    default: str = settings.RESPONSES_DEFAULT_MODEL
    if live.find(default) is None and live.models:
        return live.models[0].name
    return default
