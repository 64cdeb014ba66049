"""Records when stored entries are used, which decides on eviction: to the minute, and only where a limit is set."""

from datetime import timedelta
from typing import Any

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from responses_api.caller import Caller
from responses_api.models import Conversation, Response

from .make_room import conversation_limit, project_limit, store_limit

STEP = timedelta(minutes=1)


def touch_response(*, caller: Caller, response_id: str) -> None:
    """Record that the caller has read or continued a response."""
    if store_limit().is_set or project_limit().is_set:
        _touch(Response.objects.filter(**caller.own, public_id=response_id), since="completed_at")


def touch_conversation(*, caller: Caller, conversation_id: str) -> None:
    """Record that the caller has read or continued a conversation."""
    if conversation_limit().is_set:
        _touch(Conversation.objects.filter(**caller.own, public_id=conversation_id), since="created_at")


def _touch(rows: QuerySet[Any], *, since: str) -> None:
    """Update ``used_at`` unless it was updated within the last minute; the first use is always recorded."""
    stale = rows.filter(Q(used_at=F(since)) | Q(used_at__lt=Now() - STEP))
    # Checked by a read first: on SQLite a write waits for other writes even if it changes nothing.
    if stale.exists():
        stale.update(used_at=Now())
