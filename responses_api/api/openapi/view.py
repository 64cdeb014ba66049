"""Serves the document."""

from functools import cache

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response

from responses_api.api.endpoint import Endpoint

from .document import openapi_document
from .schemas import Json


@cache
def served_document() -> Json:
    """This server's document, built when first asked for."""
    return openapi_document(version=settings.RESPONSES_VERSION, chat=settings.RESPONSES_CHAT)


class OpenApiView(Endpoint):
    """``GET /openapi.json``: open to everyone."""

    authentication_classes: list = []
    permission_classes: list = []

    def get(self, request: Request) -> Response:
        return Response(served_document())
