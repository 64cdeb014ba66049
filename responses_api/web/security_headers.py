"""The content security policy of the server's pages: they load resources from this server only."""

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

# Django's admin sets style attributes by scripts; all scripts are files.
POLICY = (
    "default-src 'none'; "
    "script-src 'self'; "
    "style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; "
    "font-src 'self'; "
    "connect-src 'self'; "
    "form-action 'self'; "
    "base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADER = "Content-Security-Policy"


def protect(response: HttpResponseBase) -> HttpResponseBase:
    """Add the policy to an HTML page. The API's JSON needs none."""
    if response.headers.get("Content-Type", "").startswith("text/html"):
        response.headers.setdefault(HEADER, POLICY)
    return response


@sync_and_async_middleware
def content_security_policy(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """The middleware, synchronous or asynchronous as ``get_response`` is, so that no thread is added."""
    if iscoroutinefunction(get_response):
        answer: Callable[[HttpRequest], Awaitable[HttpResponseBase]] = get_response

        async def on_loop(request: HttpRequest) -> HttpResponseBase:
            return protect(await answer(request))

        return on_loop

    def on_thread(request: HttpRequest) -> HttpResponseBase:
        return protect(get_response(request))

    return on_thread
