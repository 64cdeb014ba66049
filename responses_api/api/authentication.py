"""API keys for DRF's views."""

from typing import TYPE_CHECKING

from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from responses_api.caller import Caller
from responses_api.services.authenticate import authenticate

if TYPE_CHECKING:
    # DRF imports this module while it imports its own views.
    from rest_framework.views import APIView


class KeyAuthentication(BaseAuthentication):
    """Sets ``request.auth`` to the :class:`Caller`. Without a key it is the open one, or 401."""

    def authenticate(self, request: Request) -> tuple[None, Caller]:
        headers = request.headers
        return None, authenticate(
            authorization=headers.get("authorization", ""), x_api_key=headers.get("x-api-key", "")
        )

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class HasCaller(BasePermission):
    """Somebody was authenticated."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return isinstance(request.auth, Caller)
