"""Writes a response's row, which puts it into the queue, and wakes a worker for it."""

from django.db import IntegrityError, transaction

from responses_api.caller import Caller
from responses_api.errors import Overloaded
from responses_api.models import Response, Status
from responses_api.protocol import CreateResponse
from responses_api.protocol.requests.compact import CompactRequest
from responses_api.selectors.responses import get_previous
from responses_api.services.jobs.dispatch import wake_workers
from responses_api.services.jobs.event_log import begin_log
from responses_api.services.jobs.remove_jobs import remove_jobs
from responses_api.streaming import ResponseBuilder, encode_event

from .admission_limits import LimitIsNear, take_place
from .find_history import conversation_to_continue


def queue_response(row: Response, *, caller: Caller, request: CreateResponse | CompactRequest) -> None:
    """Write a new row and wake a worker. Raises an :class:`ApiError`, and then there is no row."""
    _insert(row, caller=caller, request=request)
    try:
        wake_workers(background=row.background)
    except Overloaded:
        remove_jobs(Response.objects.filter(pk=row.pk, status=Status.QUEUED))
        raise


def _insert(row: Response, *, caller: Caller, request: CreateResponse | CompactRequest) -> None:
    """Write the row. If the history has changed since it was read, read it again."""
    try:
        _save_where_there_is_room(row)
    except IntegrityError:
        # The turn was removed with the previous response, the conversation or one of its items; or the key or the
        # project was deleted.
        if request.previous_response_id is not None:
            get_previous(caller=caller, response_id=request.previous_response_id)
        if isinstance(request, CompactRequest) or request.conversation is None:
            raise Overloaded("What this request builds on was changed meanwhile. Send it again.") from None
    else:
        return
    row.pk = None
    # Locked this time, since a conversation that is edited all the time could change again.
    with transaction.atomic():
        row.conversation = conversation_to_continue(caller=caller, request=request, lock=True)
        row.parent_id = row.conversation.turn_id
        _save_where_there_is_room(row)


def _save_where_there_is_room(row: Response) -> None:
    """Insert the row, and for a background job the first events of its log. Raises when a limit is reached."""
    try:
        _save(row, is_alone=False)
    except LimitIsNear:
        _save(row, is_alone=True)


def _save(row: Response, *, is_alone: bool) -> None:
    events = ResponseBuilder(row.body_dict(), queued=True).wait() if row.background else []
    with transaction.atomic():
        take_place(row, is_alone=is_alone)
        row.save(force_insert=True)
        if row.background:
            begin_log(row, [encode_event(event) for event in events])
