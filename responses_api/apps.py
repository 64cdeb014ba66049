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
        # Under ASGI every request has a thread of its own, which ends with it: nobody would use its connection again.
        request_finished.connect(close_connections, dispatch_uid="responses_api.close_connections")


def close_connections(**_signal: Any) -> None:
    """Close this thread's database connections, but none within a transaction: a test's client is called in one."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()
