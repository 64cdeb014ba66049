"""Ends background jobs that no engine works on: cancelled in the queue, refused, too old, lost too often."""

from functools import partial

import orjson
import structlog
from django.conf import settings
from django.db.models import F, Q
from django.db.models.functions import Now

from responses_api import bus
from responses_api.bus.messages import JobEvents
from responses_api.bus.sizes import size_of
from responses_api.caller import cache_scope
from responses_api.errors import EntryTooLarge
from responses_api.ids import new_id
from responses_api.models import Checkpoint, Response
from responses_api.models.store.response import ACTIVE
from responses_api.protocol import CreateResponse, objects, restore_create, sent_ids, sent_items
from responses_api.protocol.objects import OutputItem, ResponseError, StreamEvent
from responses_api.selectors.history import used_ids
from responses_api.services.prompts.blobs import seal_reasoning
from responses_api.streaming import EncodedEvent, Outcome, ResponseBuilder, encode_event, failure_events
from responses_api.streaming.chunk_record import decode_feeds
from responses_api.streaming.events import renumbered
from responses_api.streaming.replay import NotReplayable, replayed_builder
from responses_api.streaming.token_counts import TokenCounts

from .event_log import LogCursor, all_batches, decoded_events
from .finish_response import Ending, finish_response
from .leases import Lease, lease_seconds

log = structlog.get_logger(__name__)

PUBLISHED_BYTES = 4 << 20
"""Most bytes of a job's events that are sent in one message."""
TOO_LARGE = "The response is too large to be stored."


def take_unowned(pk: int) -> Response | None:
    """Claim a background job that no worker owns, to end it; ``None`` when one owns it or it has ended."""
    is_unowned = Q(worker="") | Q(lease_until__lt=Now())
    taken = Response.objects.filter(is_unowned, pk=pk, background=True, status__in=ACTIVE).update(
        worker=new_id("worker_"), attempt=F("attempt") + 1, lease_until=Now() + lease_seconds()
    )
    return Response.objects.get(pk=pk) if taken else None


def end_unowned(pk: int, *, outcome: Outcome, error: ResponseError | None = None) -> bool:
    """End a background job that no worker owns; False when one does, or it has ended."""
    row = take_unowned(pk)
    if row is None:
        return False
    lease = Lease(response=row.pk, public_id=row.public_id, worker=row.worker, attempt=row.attempt)
    return end_job(row=row, lease=lease, outcome=outcome, error=error)


def end_job(*, row: Response, lease: Lease, outcome: Outcome, error: ResponseError | None = None) -> bool:
    """Store the end of a job under its lease, then publish it. Returns False when the lease is lost.

    The last events close the items that readers have seen open; neither an engine nor a model is needed for them.
    """
    batches = all_batches(row.pk)
    cursor = LogCursor.after(batches)
    first = cursor.next_event
    request = restore_create(row.request)
    events, response = ending_events(row, request, decoded_events(batches), outcome=outcome, error=error)
    chunks = [chunk for batch in batches for feed in decode_feeds(batch.chunks) for chunk in feed]
    checkpoint = Checkpoint.objects.filter(response=row).first()
    spent = TokenCounts(**orjson.loads(checkpoint.spent)) if checkpoint is not None else None
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
        publish_job_events(row.public_id, first, encoded, last=True)
    return stored


def _end_without_output(row: Response, lease: Lease, sent: list[objects.Item], message: str) -> bool:
    batches = all_batches(row.pk)
    cursor = LogCursor.after(batches)
    first = cursor.next_event
    events, response = cut_short(row, decoded_events(batches), message=message)
    encoded = [encode_event(event) for event in events]
    ending = Ending(
        response=response,
        input_items=sent,
        started=False,
        is_too_large=True,
        log_end=cursor.batch(encoded, response=row.pk, attempt=lease.attempt, is_end=True),
    )
    stored = finish_response(lease=lease, ending=ending)
    if stored:
        publish_job_events(row.public_id, first, encoded, last=True)
    return stored


def ending_events(
    row: Response,
    request: CreateResponse,
    published: list[StreamEvent],
    *,
    outcome: Outcome,
    error: ResponseError | None,
) -> tuple[list[StreamEvent], objects.Response]:
    """The last events of a job and its final object."""
    body = row.body_dict()
    seal = (
        partial(seal_reasoning, owner=cache_scope(project_id=row.project_id, key_id=row.key_id))
        if request.wants_encrypted_reasoning
        else None
    )
    try:
        builder = replayed_builder(body, published, seal=seal)
    except NotReplayable:
        # An older version wrote the events: open items stay open, but the stream ends.
        log.warning("job.not_replayable", response=row.public_id)
        builder = ResponseBuilder(body, queued=True)
        builder.start()
        return renumbered(builder.finish(outcome, error=error), len(published)), builder.snapshot()
    return builder.finish(outcome, error=error), builder.snapshot()


def cut_short(
    row: Response, published: list[StreamEvent], *, message: str, usage: objects.Usage | None = None
) -> tuple[list[StreamEvent], objects.Response]:
    """The last events of a job whose output can't be stored, and its final object: open items are closed as
    incomplete, and the output of the object is empty.
    """
    error: ResponseError = {"code": "server_error", "message": message}
    try:
        builder = replayed_builder(row.body_dict(), published)
    except NotReplayable:
        log.warning("job.not_replayable", response=row.public_id)
        body = row.body_dict()
        failed: objects.Response = {**body, "status": "failed", "error": error, "usage": usage}
        return failure_events(failed, sequence_number=len(published), message=message), failed
    builder.finish("failed", error=error)
    events = builder.fail_instead(error, usage=usage)
    closing, end = events[:-2], events[-2:]
    if any(is_oversized(encode_event(event)) for event in closing):
        # The events that close the item repeat its text, and don't fit into the log.
        done = closing[-1]
        assert done["type"] == "response.output_item.done"
        closing = [{**done, "item": without_content(done["item"])}]
    return renumbered([*closing, *end], len(published)), builder.snapshot()


def without_content(item: OutputItem) -> OutputItem:
    """The item of an incomplete answer without the model's text."""
    emptied = item.copy()
    match emptied["type"]:
        case "message":
            emptied["content"] = []
        case "reasoning":
            emptied["content"] = []
            emptied.pop("encrypted_content", None)
        case "function_call":
            emptied["arguments"] = ""
        case "custom_tool_call":
            emptied["input"] = ""
    return emptied


def is_oversized(event: EncodedEvent) -> bool:
    """Whether an event has more bytes than the log of a job may have."""
    limit: int = settings.RESPONSES_EVENTS_MAX_BYTES
    # A character has at most four bytes.
    return 4 * len(event[1]) > limit and len(event[1].encode()) > limit


def publish_job_events(public_id: str, first: int, events: list[EncodedEvent], *, last: bool = False) -> None:
    """Publish events of a job that are persisted already. Large ones are not sent: readers find them in the log."""
    message = JobEvents(first=first, events=tuple(events), last=last)
    if size_of(message) > PUBLISHED_BYTES:
        message = JobEvents(first=first + len(events), events=())
    bus.publish(bus.response_group(public_id), message)
