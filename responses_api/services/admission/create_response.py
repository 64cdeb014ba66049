"""Admission: turns an authenticated request into a queued row, and wakes a worker."""

from typing import Any

from django.db.models.functions import Now
from django.utils import timezone

from responses_api.caller import Caller
from responses_api.ids import new_id
from responses_api.models import Response
from responses_api.protocol import CreateResponse, initial_response, objects, parse_create
from responses_api.protocol.json.writer import as_text, write_json
from responses_api.selectors.models import LiveModel
from responses_api.services.store.store_admission import is_to_be_stored

from .check_job import check_job, refuse_where_no_jobs_run
from .check_schemas import check_schemas
from .find_history import History
from .queue_response import queue_response
from .request_limits import RequestLimits
from .resolve_request import resolving


def create_response(*, caller: Caller, payload: Any, public_id: str, reader: str = "") -> Response:
    """Check a request and the limits, resolve what it names, write its row and queue it.

    Everything is checked that needs no tokenizer. A background job has no ``reader``. Raises an :class:`ApiError`, and
    then there is no row.
    """
    request = parse_create(payload)
    check_schemas(request)
    if request.background:
        refuse_where_no_jobs_run()

    with resolving(caller=caller, request=request, payload=payload) as resolved:
        served, history = resolved.served, resolved.history
        store = is_to_be_stored(caller=caller, request=request)
        limits = RequestLimits(store=store, background=request.background, history=history.size)
        request, payload = resolved.take_input(refuse=limits.check_references)

        body = _new_body(request, public_id=public_id, served=served, history=history, store=store)
        body_text, request_text = write_json(body), write_json(payload)
        limits.check_request(body=body, body_size=len(body_text), payload=payload, size=len(request_text))
        if request.background:
            check_job(request, caller=caller, history=history, assembly=resolved.assembly)

        row = Response(
            public_id=public_id,
            project=caller.project,
            key=caller.key,
            model=served.name,
            store=store,
            background=request.background,
            priority=int(request.background),
            stream=bool(request.stream),
            parent=history.turn,
            conversation=history.conversation,
            previous_response_id=request.previous_response_id or "",
            request=as_text(request_text),
            body=as_text(body_text),
            created_at=Now(),
            reader=reader,
        )
        queue_response(row, caller=caller, request=request)
        return row


def _new_body(
    request: CreateResponse, *, public_id: str, served: LiveModel, history: History, store: bool
) -> objects.Response:
    """The response object without output."""
    body = initial_response(
        request,
        id=public_id,
        created_at=int(timezone.now().timestamp()),
        model=served.name,
        temperature=request.temperature if request.temperature is not None else served.temperature,
        top_p=request.top_p if request.top_p is not None else served.top_p,
        store=store,
        status="queued" if request.background else "in_progress",
    )
    if history.conversation is not None:
        body["conversation"] = {"id": history.conversation.public_id}
    return body


def new_response_id() -> str:
    """A new public id for a response: made before the row, since the reader subscribes before the row is written."""
    return new_id("resp_")
