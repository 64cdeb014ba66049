"""``/models``: the catalogue of served models."""

from rest_framework.request import Request
from rest_framework.response import Response

from responses_api.protocol import model_list
from responses_api.selectors.models import get_model, list_models

from .endpoint import Endpoint


class ModelsView(Endpoint):
    """All served models, aliases included."""

    def get(self, request: Request) -> Response:
        return Response(model_list(list_models()))


class ModelView(Endpoint):
    """One model or alias."""

    def get(self, request: Request, name: str) -> Response:
        return Response(get_model(name))
