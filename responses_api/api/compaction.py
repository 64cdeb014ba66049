"""``POST /responses/compact``."""

from asgiref.sync import async_to_sync
from django.db import connection
from rest_framework.request import Request
from rest_framework.response import Response

from .admission import compaction_admission
from .conversations import body
from .endpoint import Endpoint
from .request_scope import forget_body
from .views import caller, wait_for_response


class CompactionView(Endpoint):
    """A history, compacted: what stays of it and one compaction item. Nothing is stored."""

    def post(self, request: Request) -> Response:
        admit = compaction_admission(caller(request), body(request))
        forget_body(request._request.scope)  # type: ignore[attr-defined]
        connection.close()
        return Response(async_to_sync(wait_for_response)(admit, caller(request)))
