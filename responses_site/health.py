"""Liveness and readiness, for supervisors and load balancers. Neither needs a key."""

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse

from responses_api.selectors.models import live_fleet
from responses_api.web.reading import read_only


@read_only
def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


@read_only
def readyz(request: HttpRequest) -> JsonResponse:
    """The database answers, and a worker has announced a model."""
    try:
        connection.ensure_connection()
        models = len(live_fleet().offers)
    except DatabaseError:
        return JsonResponse({"status": "unavailable", "reason": "The database can't be reached."}, status=503)
    if not models:
        return JsonResponse({"status": "unavailable", "reason": "No worker has announced a model."}, status=503)
    return JsonResponse({"status": "ok", "models": models})
