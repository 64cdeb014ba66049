"""Authentication of callers for DRF's views."""

from typing import TYPE_CHECKING

from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from responses_api.caller import Caller
from responses_api.services.accounts.authenticate import authenticate

from .origin import is_foreign_page, is_forwarded
from .request_scope import CALLER, Scope, header

if TYPE_CHECKING:
    # DRF imports this module while it imports its own views.
    from rest_framework.views import APIView


def identify(scope: Scope) -> Caller:
    """The caller, by the request's headers. Raises :class:`AuthenticationFailed` or :class:`PermissionDenied`."""
    return authenticate(
        authorization=header(scope, b"authorization"),
        x_api_key=header(scope, b"x-api-key"),
        is_forwarded=is_forwarded(scope),
        is_foreign_page=is_foreign_page(scope),
    )


class KeyAuthentication(BaseAuthentication):
    """Sets ``request.auth`` to the :class:`Caller` that the router has identified, or identifies it without one."""

    def authenticate(self, request: Request) -> tuple[None, Caller]:
        scope = getattr(request._request, "scope", {})
        if CALLER in scope:
            return None, scope[CALLER]
        headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in request.headers.items()]
        return None, identify({"headers": headers, "scheme": request.scheme})

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class HasCaller(BasePermission):
    """Requires an authenticated caller."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return isinstance(request.auth, Caller)
