"""Converts every exception behind the API to the error envelope."""

from typing import Any

import structlog
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions as drf
from rest_framework.response import Response

from responses_api.errors import (
    ApiError,
    AuthenticationFailed,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    Overloaded,
    PermissionDenied,
    RequestTooLarge,
    ServerError,
    shown,
)

NOT_OFFERED = (
    ("/completions", "This server does not offer completions; use `POST /chat/completions` or `POST /responses`."),
    ("/chat/completions/", "Chat completions are not stored here; use `POST /responses`, whose responses are."),
)
"""Addresses of OpenAI's API by their beginning, and what to use instead."""

log = structlog.get_logger(__name__)


def as_api_error(error: BaseException) -> ApiError:
    """The error for the client. Errors of the server are logged, once, with the request's id."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, OperationalError | InterfaceError):
        log.error("request.database_unavailable", error=str(error))
        return Overloaded("The server's database can't be reached at the moment. Try again in a few seconds.")
    if isinstance(error, drf.APIException):
        return from_drf(error)
    log.error("request.failed", exc_info=error)
    return ServerError(
        "The server had an error while it processed the request. Send the request id when you report it."
    )


def from_drf(error: drf.APIException) -> ApiError:
    """The equivalent of an exception of DRF's."""
    if isinstance(error, drf.NotAuthenticated | drf.AuthenticationFailed):
        return AuthenticationFailed(str(error.detail))
    if isinstance(error, drf.PermissionDenied):
        return PermissionDenied(str(error.detail))
    if isinstance(error, drf.NotFound):
        return NotFound(str(error.detail))
    return InvalidRequest(str(error.detail))


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's exception handler."""
    if isinstance(error, drf.MethodNotAllowed):
        view = context["view"]
        known: ApiError = MethodNotAllowed.for_method(context["request"].method, view.allowed_methods)
    elif isinstance(error, Http404):
        known = NotFound("There is nothing at this address.")
    elif isinstance(error, DjangoPermissionDenied):
        known = PermissionDenied("You are not allowed to do this.")
    else:
        known = as_api_error(error)
    return Response(known.envelope(), status=known.status, headers=known.headers)


def error_response(error: ApiError) -> JsonResponse:
    """The envelope as a plain Django response."""
    return JsonResponse(error.envelope(), status=error.status, headers=error.headers)


def unknown_route(request: HttpRequest, exception: Exception | None = None) -> JsonResponse:
    """404 for an address that doesn't exist; for OpenAI's addresses that are not served here, with the reason."""
    address = f"{shown(request.method or '')} {shown(request.path)}"
    path = request.path.removeprefix("/v1")
    advice = next((text for start, text in NOT_OFFERED if path.startswith(start)), "Check the path and the base URL.")
    return error_response(NotFound(f"Unknown request URL: {address}. {advice}"))


def bad_request(request: HttpRequest, exception: Exception | None = None) -> JsonResponse:
    """400 for requests that Django refuses before any view: a foreign host name, a broken header."""
    kind = type(exception).__name__
    if kind == "DisallowedHost":
        return error_response(
            InvalidRequest(
                "This server does not answer to that host name. RESPONSES_ALLOWED_HOSTS lists the names it has."
            )
        )
    if kind == "RequestDataTooBig":
        return error_response(RequestTooLarge("The request body is larger than this server accepts."))
    return error_response(InvalidRequest("The request is malformed."))


def server_error(request: HttpRequest) -> JsonResponse:
    """500 for errors outside the views."""
    return error_response(ServerError("The server had an error while it processed the request."))
