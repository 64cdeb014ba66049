"""``POST /responses/input_tokens``."""

from asgiref.sync import async_to_sync
from django.db import connection
from rest_framework.request import Request
from rest_framework.response import Response

from responses_api.services.admission.count_input_tokens import count_input_tokens

from .conversations import body
from .endpoint import Endpoint
from .views import caller


class InputTokensView(Endpoint):
    """How many tokens a create request's input has, answered by a worker."""

    def post(self, request: Request) -> Response:
        payload = body(request)
        who = caller(request)
        connection.close()
        tokens = async_to_sync(count_input_tokens)(caller=who, payload=payload)
        return Response({"object": "response.input_tokens", "input_tokens": tokens})
