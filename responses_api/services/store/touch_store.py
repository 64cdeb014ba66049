"""Noting that something stored was used, so that it is evicted later: by the minute, and only where a limit is set."""

from datetime import timedelta
from typing import Any

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from responses_api.caller import Caller
from responses_api.models import Conversation, Response

from .make_room import conversation_limit, project_limit, store_limit

STEP = timedelta(minutes=1)


def touch_response(*, caller: Caller, response_id: str) -> None:
    """A response that the caller has found was read or continued."""
    if store_limit().is_set or project_limit().is_set:
        _touch(Response.objects.filter(**caller.own, public_id=response_id), since="completed_at")


def touch_conversation(*, caller: Caller, conversation_id: str) -> None:
    """A conversation that the caller has found was read or continued."""
    if conversation_limit().is_set:
        _touch(Conversation.objects.filter(**caller.own, public_id=conversation_id), since="created_at")


def _touch(rows: QuerySet[Any], *, since: str) -> None:
    """Touch what was not touched within the minute; the first use counts at any time."""
    stale = rows.filter(Q(used_at=F(since)) | Q(used_at__lt=Now() - STEP))
    # Looked at first: on SQLite a write that changes nothing waits for other writes all the same.
    if stale.exists():
        stale.update(used_at=Now())
