"""The end of a background job that no engine works on: cancelled in the queue, refused, too old, lost too often."""

from functools import partial
from typing import Any

import orjson
import structlog
from django.conf import settings
from django.db.models import F, Q
from django.db.models.functions import Now

from responses_api import bus
from responses_api.bus.messages import JobEvents
from responses_api.caller import cache_scope
from responses_api.errors import EntryTooLarge
from responses_api.ids import new_id
from responses_api.models import Checkpoint, Response
from responses_api.models.store.response import ACTIVE
from responses_api.protocol import objects, parse_create, sent_ids, sent_items
from responses_api.protocol.json.reader import read_stored
from responses_api.protocol.objects import ResponseError
from responses_api.selectors.history import used_ids
from responses_api.services.prompts.blobs import seal_reasoning
from responses_api.streaming import EncodedEvent, Event, Outcome, ResponseBuilder, encode_event, failure_events
from responses_api.streaming.chunk_record import decode_chunks
from responses_api.streaming.replay import NotReplayable, replayed_builder
from responses_api.streaming.token_counts import TokenCounts

from .event_log import LogCursor, all_batches, decoded_events
from .finish_response import Ending, finish_response
from .leases import Lease, lease_seconds

log = structlog.get_logger(__name__)

TOO_LARGE = "The response is too large to be stored."


def take_unheld(pk: int) -> Response | None:
    """Claim a background job that no worker holds, to end it; ``None`` when one holds it or it has ended."""
    unheld = Q(worker="") | Q(lease_until__lt=Now())
    taken = Response.objects.filter(unheld, pk=pk, background=True, status__in=ACTIVE).update(
        worker=new_id("worker_"), attempt=F("attempt") + 1, lease_until=Now() + lease_seconds()
    )
    return Response.objects.get(pk=pk) if taken else None


def end_unheld(pk: int, *, outcome: Outcome, fault: ResponseError | None = None) -> bool:
    """End a background job that no worker holds; False when one does, or it has ended."""
    row = take_unheld(pk)
    if row is None:
        return False
    lease = Lease(response=row.pk, public_id=row.public_id, worker=row.worker, attempt=row.attempt)
    return end_job(row=row, lease=lease, outcome=outcome, fault=fault)


def end_job(*, row: Response, lease: Lease, outcome: Outcome, fault: ResponseError | None = None) -> bool:
    """Store the end of a job that the lease holds, then tell it. False when the lease is lost.

    Its events close what readers have seen open; nothing of an engine or a model is needed for that.
    """
    batches = all_batches(row.pk)
    cursor = LogCursor.after(batches)
    body, first = row.body_dict(), cursor.next_event
    events, response = ending_events(row, body, decoded_events(batches), outcome=outcome, fault=fault)
    chunks = [chunk for batch in batches for chunk in decode_chunks(batch.chunks)]
    checkpoint = Checkpoint.objects.filter(response=row).first()
    spent = TokenCounts(**orjson.loads(checkpoint.spent)) if checkpoint is not None else None
    request = parse_create(read_stored(row.request))
    encoded = [encode_event(event) for event in events]
    ending = Ending(
        response=response,
        input_items=sent_items(request, response_id=row.public_id, used=used_ids(row.parent_id, sent_ids(request))),
        input_tokens=len(orjson.loads(checkpoint.prompt)) if checkpoint is not None else 0,
        cached_tokens=sum(chunk.cached_tokens for chunk in chunks),
        output_tokens=sum(len(chunk.tokens) for chunk in chunks),
        started=bool(chunks) or (spent is not None and spent.input > 0),
        spent=spent or TokenCounts(),
        log_end=cursor.batch(encoded, response=row.pk, attempt=lease.attempt, is_end=True),
    )
    try:
        stored = finish_response(lease=lease, ending=ending)
    except EntryTooLarge as refusal:
        log.warning("job.too_large", response=row.public_id)
        return _end_without_output(row, lease, ending.input_items, refusal.message)
    if stored:
        tell_readers(row.public_id, first, encoded, last=True)
    return stored


def _end_without_output(row: Response, lease: Lease, sent: list[dict[str, Any]], message: str) -> bool:
    batches = all_batches(row.pk)
    cursor = LogCursor.after(batches)
    first = cursor.next_event
    events = cut_short(row, decoded_events(batches), message=message)
    encoded = [encode_event(event) for event in events]
    ending = Ending(
        response=events[-1]["response"],
        input_items=sent,
        started=False,
        is_too_large=True,
        log_end=cursor.batch(encoded, response=row.pk, attempt=lease.attempt, is_end=True),
    )
    stored = finish_response(lease=lease, ending=ending)
    if stored:
        tell_readers(row.public_id, first, encoded, last=True)
    return stored


def ending_events(
    row: Response, body: objects.Response, told: list[Event], *, outcome: Outcome, fault: ResponseError | None
) -> tuple[list[Event], objects.Response]:
    """The last events of a job and its final object."""
    request = parse_create(read_stored(row.request))
    seal = (
        partial(seal_reasoning, owner=cache_scope(project_id=row.project_id, key_id=row.key_id))
        if request.wants_encrypted_reasoning
        else None
    )
    try:
        builder = replayed_builder(body, told, seal=seal)
    except NotReplayable:
        # An older version's events: what is open stays open, and the stream ends all the same.
        log.warning("job.not_replayable", response=row.public_id)
        builder = ResponseBuilder(body, queued=True)
        builder.start()
        events = builder.finish(outcome, error=fault)
        numbered = enumerate(events, start=len(told))
        return [{**event, "sequence_number": number} for number, event in numbered], builder.snapshot()
    return builder.finish(outcome, error=fault), builder.snapshot()


def cut_short(row: Response, told: list[Event], *, message: str, usage: objects.Usage | None = None) -> list[Event]:
    """The end of a job of which nothing can be stored: what is open is closed as cut, and the output stays empty."""
    fault: ResponseError = {"code": "server_error", "message": message}
    try:
        builder = replayed_builder(row.body_dict(), told)
    except NotReplayable:
        log.warning("job.not_replayable", response=row.public_id)
        body = row.body_dict()
        created: objects.Response = {**body, "status": "in_progress", "usage": usage}
        return failure_events(created, sequence_number=len(told), message=message)
    builder.finish("failed", error=fault)
    events = builder.fail_instead(fault, usage=usage)
    closing, end = events[:-2], events[-2:]
    if any(is_oversized(encode_event(event)) for event in closing):
        # The log can't keep what closes the item with its text.
        closing = [{**closing[-1], "item": without_content(closing[-1]["item"])}]
    return [{**event, "sequence_number": number} for number, event in enumerate([*closing, *end], start=len(told))]


def without_content(item: dict[str, Any]) -> dict[str, Any]:
    """The item of a cut answer without what the model wrote."""
    emptied = {"content": [], "arguments": "", "input": ""}
    kept = {key: value for key, value in item.items() if key != "encrypted_content"}
    return {**kept, **{key: value for key, value in emptied.items() if key in item}}


def is_oversized(event: EncodedEvent) -> bool:
    """Whether an event has more bytes than the log of a job may keep."""
    limit: int = settings.RESPONSES_EVENTS_MAX_BYTES
    # A character has at most four bytes.
    return 4 * len(event[1]) > limit and len(event[1].encode()) > limit


def tell_readers(public_id: str, first: int, events: list[EncodedEvent], *, last: bool = False) -> None:
    """Publish events of a job that are kept."""
    bus.publish(bus.response_group(public_id), JobEvents(first=first, events=tuple(events), last=last))
