"""Admission: from an authenticated, well-formed request to a queued row that workers have been told of."""

from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils import timezone

from responses_api.caller import Caller
from responses_api.errors import (
    InvalidRequest,
    MissingParameter,
    Overloaded,
    RequestTooLarge,
    UnsupportedParameter,
)
from responses_api.ids import new_id
from responses_api.models import Conversation, Response, Status, Turn
from responses_api.protocol import CreateResponse, initial_response, input_items
from responses_api.protocol.compaction import CompactRequest
from responses_api.protocol.json_writer import as_text, write_json
from responses_api.selectors.conversations import conversation_not_found, get_conversation
from responses_api.selectors.history import history_items
from responses_api.selectors.models import resolve_model
from responses_api.selectors.responses import get_previous
from responses_api.services.jobs.dispatch import wake_workers
from responses_api.services.jobs.event_log import begin_log
from responses_api.services.jobs.remove_jobs import remove_jobs
from responses_api.services.prompts.assemble_history import Assembly, assembling
from responses_api.services.prompts.render_prompt import history_and_sent
from responses_api.services.store.move_conversation import history_bytes, lock_conversation
from responses_api.services.store.open_response import open_previous
from responses_api.services.store.store_admission import (
    is_to_be_stored,
    refuse_large_echo,
    refuse_too_large,
    refuse_what_will_be_too_large,
)
from responses_api.services.store.touch_store import touch_conversation
from responses_api.streaming import ResponseBuilder, encode_event

from .admission_limits import LimitIsNear, refuse_job_when_full, take_place
from .check_schemas import check_schemas
from .take_input import take_input


def create_response(
    *, caller: Caller, request: CreateResponse, public_id: str, payload: dict[str, Any], reader: str = ""
) -> Response:
    """Admit a request: check all that needs no tokenizer, write the row, wake a worker. A job has no ``reader``.

    Raises an :class:`ApiError`, and then nothing is left behind.
    """
    with assembling(caller.scope) as assembly:
        return _admit(
            caller=caller, request=request, public_id=public_id, payload=payload, reader=reader, assembly=assembly
        )


def _admit(
    *,
    caller: Caller,
    request: CreateResponse,
    public_id: str,
    payload: dict[str, Any],
    reader: str,
    assembly: Assembly,
) -> Response:
    check_schemas(request)
    if request.background:
        refuse_unwanted_job(request)
    offer = resolve_model(request.model)
    previous = None
    if request.previous_response_id is not None:
        previous = open_previous(caller=caller, response_id=request.previous_response_id)
    conversation = None
    if request.conversation is not None:
        conversation = conversation_to_continue(caller=caller, request=request)
        touch_conversation(caller=caller, conversation_id=request.conversation)
    parent = previous.turn if previous else conversation.turn if conversation else None
    store = is_to_be_stored(caller=caller, request=request)

    def refuse_references(size: int) -> None:
        if request.background:
            refuse_unwanted_storing(store=store, size=size)
        if store or request.background:
            refuse_too_large(history_bytes(parent) + size, background=request.background)

    request, payload = take_input(
        caller=caller,
        request=request,
        payload=payload,
        assembly=assembly,
        history=history_bytes(parent),
        refuse=refuse_references,
    )
    now = timezone.now().replace(microsecond=0)
    body = initial_response(
        request,
        id=public_id,
        created_at=int(now.timestamp()),
        model=offer.name,
        temperature=request.temperature if request.temperature is not None else offer.temperature,
        top_p=request.top_p if request.top_p is not None else offer.top_p,
        store=store,
        status="queued" if request.background else "in_progress",
    )
    if conversation is not None:
        body["conversation"] = {"id": conversation.public_id}
    body_text = write_json(body)
    refuse_large_echo(body, len(body_text))
    request_text = write_json(payload)
    if request.background:
        refuse_unwanted_storing(store=store, size=len(request_text))
    if store or request.background:
        # A job is stored however it ends, if only for a while.
        refuse_what_will_be_too_large(
            history=history_bytes(parent),
            body=len(body_text),
            request=len(request_text),
            payload=payload,
            background=request.background,
        )
    if request.background:
        # Counted again when the row is inserted; a history isn't read in vain.
        refuse_job_when_full(key_id=None if caller.key is None else caller.key.pk)
        refuse_open_calls(request, parent=parent, assembly=assembly)
    row = Response(
        public_id=public_id,
        project=caller.project,
        key=caller.key,
        model=offer.name,
        store=store,
        background=request.background,
        priority=int(request.background),
        stream=bool(request.stream),
        parent=parent,
        conversation=conversation,
        previous_response_id=request.previous_response_id or "",
        request=as_text(request_text),
        body=as_text(body_text),
        created_at=Now(),
        reader=reader,
    )
    queue_job(row, caller=caller, request=request)
    return row


def queue_job(row: Response, *, caller: Caller, request: CreateResponse | CompactRequest) -> None:
    """Write a job's row and wake a worker. Raises an :class:`ApiError`, and then there is no row."""
    insert_response(row, caller=caller, request=request)
    try:
        wake_workers(background=row.background)
    except Overloaded:
        remove_jobs(Response.objects.filter(pk=row.pk, status=Status.QUEUED))
        raise


def conversation_to_continue(*, caller: Caller, request: CreateResponse, lock: bool = False) -> Conversation:
    """The conversation that a request names. Raises a 404, or a 400 when neither it nor the request has an item."""
    assert request.conversation is not None
    conversation = get_conversation(caller=caller, conversation_id=request.conversation, param="conversation")
    if lock:
        held = lock_conversation(conversation.pk)
        if held is None:
            raise conversation_not_found(request.conversation, param="conversation")
        conversation = held
    if conversation.turn_id is None and not request.input:
        raise MissingParameter(
            "`input` is missing, and the conversation is empty; send a string or at least one item.", param="input"
        )
    return conversation


def insert_response(row: Response, *, caller: Caller, request: CreateResponse | CompactRequest) -> None:
    """Write the row. What it builds on may have changed between our look and our write: then look again."""
    try:
        save_job(row)
    except IntegrityError:
        # The previous response was deleted, or the conversation or one of its items, and the turn swept; or the key
        # or the project is gone.
        if request.previous_response_id is not None:
            get_previous(caller=caller, response_id=request.previous_response_id)
        if isinstance(request, CompactRequest) or request.conversation is None:
            raise Overloaded("What this request builds on was changed meanwhile. Send it again.") from None
    else:
        return
    row.pk = None
    # A conversation that is edited all the time would change again: this time it waits for us.
    with transaction.atomic():
        row.conversation = conversation_to_continue(caller=caller, request=request, lock=True)
        row.parent_id = row.conversation.turn_id
        save_job(row)


def save_job(row: Response) -> None:
    """Insert the row if there is room for it, and with a background job the first events of its log."""
    try:
        insert_job(row, is_alone=False)
    except LimitIsNear:
        insert_job(row, is_alone=True)


def insert_job(row: Response, *, is_alone: bool) -> None:
    """The same; raises :class:`LimitIsNear` when it has to be ``is_alone``."""
    waiting = ResponseBuilder(row.body_dict(), queued=True).wait() if row.background else []
    with transaction.atomic():
        take_place(row, is_alone=is_alone)
        row.save(force_insert=True)
        if row.background:
            begin_log(row, [encode_event(event) for event in waiting])


def refuse_unwanted_job(request: CreateResponse) -> None:
    """Raise a 400 where the server runs no background jobs, or none like this."""
    off = {
        "RESPONSES_BACKGROUND_MAX_JOBS": settings.RESPONSES_BACKGROUND_MAX_JOBS,
        "RESPONSES_STORE_MAX_ENTRIES": settings.RESPONSES_STORE_MAX_ENTRIES,
        "RESPONSES_STORE_MAX_BYTES": settings.RESPONSES_STORE_MAX_BYTES,
    }
    for name, value in off.items():
        if value == 0:
            raise UnsupportedParameter(
                f"This server runs no background responses ({name} is 0). Leave `background` out.", param="background"
            )


def refuse_unwanted_storing(*, store: bool, size: int) -> None:
    """Raise a 400 for a job that is not to be stored where it must be, a 413 for one whose request is too large."""
    if settings.RESPONSES_BACKGROUND_REQUIRES_STORE and not store:
        raise InvalidRequest(
            "On this server a background response must be stored (RESPONSES_BACKGROUND_REQUIRES_STORE). Send "
            "`store: true`, or leave `background` out.",
            param="store",
        )
    limit = settings.RESPONSES_BACKGROUND_INPUT_MAX_BYTES
    if size > limit:
        raise RequestTooLarge(
            f"The request has {size} bytes, and that of a background response may have {limit} "
            "(RESPONSES_BACKGROUND_INPUT_MAX_BYTES). Shorten the input, or leave `background` out.",
            param="input",
        )


def refuse_open_calls(request: CreateResponse, *, parent: Turn | None, assembly: Assembly) -> None:
    """Raise a 400 for a call without its output, or an output without its call, over history and input.

    For jobs, whose refusal by a worker would come too late for an answer; others wait for the worker anyway.
    """
    assembly.add(history_bytes(parent))
    history = history_items(None if parent is None else parent.pk)
    history_and_sent(history, input_items(request), owner=assembly.owner, take=assembly.add)


def new_response_id() -> str:
    """A fresh public id for a response: made before the row, since its reader listens before there is one."""
    return new_id("resp_")
