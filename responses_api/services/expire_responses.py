"""Retention: what is past its time is removed, some at a time so that nothing waits long for a lock."""

from collections.abc import Callable

from django.db.models.functions import Now

from responses_api.counting import STORE_EXPIRIES, count
from responses_api.models import Response
from responses_api.models.response import ACTIVE

from .delete_conversation import idle_conversations, remove_conversations
from .delete_response import remove_responses

BATCH = 100


def at_once() -> None:
    """No pause."""


def expire_responses(pause: Callable[[], None] = at_once) -> int:
    """Remove all expired responses and conversations; returns how many. ``pause`` is called after each batch."""
    total = 0
    while True:
        rows = list(
            Response.objects.filter(expires_at__lte=Now()).exclude(status__in=ACTIVE).only("pk", "turn_id")[:BATCH]
        )
        removed = remove_responses(rows)
        count(STORE_EXPIRIES, removed)
        total += removed
        if len(rows) < BATCH:
            break
        pause()
    return total + expire_conversations(pause)


def expire_conversations(pause: Callable[[], None] = at_once) -> int:
    """Remove all expired conversations; returns how many. ``pause`` is called after each batch."""
    total = 0
    while True:
        keys = list(idle_conversations().filter(expires_at__lte=Now()).values_list("pk", flat=True)[:BATCH])
        total += remove_conversations(keys, expired=True)
        if len(keys) < BATCH:
            return total
        pause()
