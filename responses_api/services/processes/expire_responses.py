"""Retention: removes expired responses and conversations in batches, so that nothing waits long for a lock."""

from collections.abc import Callable

from django.db.models.functions import Now

from responses_api.counting import CONVERSATION_EXPIRIES, STORE_EXPIRIES, count
from responses_api.models import Response
from responses_api.models.store.response import ACTIVE
from responses_api.services.store.delete_conversation import expired_conversations, remove_conversations
from responses_api.services.store.delete_response import remove_responses

from .sweep_pace import sweep_batch


def at_once() -> None:
    """No pause."""


def expire_responses(pause: Callable[[], None] = at_once) -> int:
    """Remove all expired responses and conversations; returns how many. ``pause`` is called after each batch."""
    total, batch = 0, sweep_batch()
    while True:
        expired = Response.objects.filter(expires_at__lte=Now()).exclude(status__in=ACTIVE)
        keys = list(expired.order_by("expires_at").values_list("pk", flat=True)[:batch])
        removed = remove_responses(keys) if keys else 0
        count(STORE_EXPIRIES, removed)
        total += removed
        if len(keys) < batch:
            break
        pause()
    return total + expire_conversations(pause)


def expire_conversations(pause: Callable[[], None] = at_once) -> int:
    """Remove all expired conversations; returns how many. ``pause`` is called after each batch."""
    total, batch = 0, sweep_batch()
    while True:
        keys = list(expired_conversations().order_by("expires_at").values_list("pk", flat=True)[:batch])
        # Checked again under the lock: a new turn may have renewed a conversation meanwhile.
        removed = remove_conversations(expired_conversations().filter(pk__in=keys), skip_locked=True)
        count(CONVERSATION_EXPIRIES, removed)
        total += removed
        if len(keys) < batch or not removed:
            return total
        pause()
