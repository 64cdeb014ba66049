"""Liveness and readiness, for supervisors and load balancers. Neither needs a key."""

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse

from responses_api.protocol.objects import Health
from responses_api.selectors.models import get_live_workers
from responses_api.web.reading import read_only


@read_only
def healthz(request: HttpRequest) -> JsonResponse:
    """Liveness: the process answers."""
    return answer({"status": "ok"})


@read_only
def readyz(request: HttpRequest) -> JsonResponse:
    """Readiness: the database answers, and a live worker serves a model."""
    try:
        connection.ensure_connection()
        models = len(get_live_workers().models)
    except DatabaseError:
        return answer({"status": "unavailable", "reason": "The database can't be reached."})
    if not models:
        return answer({"status": "unavailable", "reason": "No worker has announced a model."})
    return answer({"status": "ok", "models": models})


def answer(health: Health) -> JsonResponse:
    """A 200, or a 503 when the server is unavailable."""
    return JsonResponse(health, status=200 if health["status"] == "ok" else 503)
