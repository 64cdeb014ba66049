"""The Django app of the Responses API."""

from typing import Any

from django.apps import AppConfig
from django.core.signals import request_finished
from django.db import connections


class ResponsesApiConfig(AppConfig):
    """One app for the store, the endpoints, the admin and the commands."""

    name = "responses_api"
    verbose_name = "Responses API"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Under ASGI every request has its own thread, which ends with it: its connection would never be used again.
        request_finished.connect(close_connections, dispatch_uid="responses_api.close_connections")


def close_connections(**_signal: Any) -> None:
    """Close this thread's database connections, except within a transaction, in which a test's client is called."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
