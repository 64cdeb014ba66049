"""The end of a generation: one transaction stores its items, usage and status. Fenced by the lease."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from responses_api import counting
from responses_api.counting import count, observe
from responses_api.database.write_ahead_log import note_removal
from responses_api.models import Checkpoint, EventBatch, Response, Status, StoreChange, Turn, UsageRecord
from responses_api.protocol import objects
from responses_api.services.store.make_room import Evicted, make_room_for_conversations, make_room_for_responses
from responses_api.services.store.move_conversation import append_turn, history_bytes
from responses_api.services.store.store_admission import refuse_too_large
from responses_api.services.store.store_changes import record_change
from responses_api.services.store.sweep_turns import sweep_turns
from responses_api.services.store.turns import write_turn
from responses_api.streaming.events import EndedCompaction
from responses_api.streaming.token_counts import TokenCounts

from .leases import Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a generation ended."""

    response: objects.Response | EndedCompaction
    """The final object."""
    input_items: list[objects.Item]
    """The items of the request, each with its id."""
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    first_token_ms: int | None = None
    spent: TokenCounts = field(default_factory=TokenCounts)
    """Tokens of a compaction before the answer: accounted for, and not part of the response's usage."""
    started: bool = field(default=True)
    """Whether the model did anything, so that there is usage to account for."""
    is_too_large: bool = False
    """Whether the answer was too large to be stored: the failure is stored in its place, for later requests."""
    log_end: EventBatch | None = None
    """A job's last events, for its log."""


def finish_response(*, lease: Lease, ending: Ending) -> bool:
    """Store the end of a generation. Returns False, and writes nothing, if the lease was lost.

    Stored are responses with ``store: true`` that have an answer, complete or incomplete, and all background jobs. The
    row of a foreground response that failed, whose client left, or with ``store: false`` is removed; its usage stays. A
    conversation that the response names gets the items of the request and the answer in the same transaction (see
    :func:`append_turn`), also with ``store: false``.

    Raises :class:`EntryTooLarge`, and writes nothing, when the answer is too large to be stored; the caller then stores
    an ending with ``is_too_large``.
    """
    with transaction.atomic():
        # With the time by the database's clock: a worker's may be wrong, and expiry is calculated from it.
        row = lease.rows().select_for_update().annotate(now=Now()).first()
        if row is None:
            return False
        status = Status(ending.response["status"])
        if ending.started:
            record_usage(row, status, ending)
        turn = None
        change = StoreChange(project_id=row.project_id)
        has_answer = status in (Status.COMPLETED, Status.INCOMPLETE)
        payloads = [
            *((item, False) for item in ending.input_items),
            *((item, True) for item in ending.response["output"]),
        ]
        if ending.is_too_large:
            # The input alone fits: it was checked at admission.
            turn = write_turn(parent=row.parent, payloads=payloads[: len(ending.input_items)], change=change)
        elif row.background or (row.store and has_answer):
            turn = write_turn(parent=row.parent, payloads=payloads, change=change)
        if has_answer:
            append_turn(row=row, turn=turn, payloads=payloads, change=change)
        if ending.log_end is not None:
            EventBatch.objects.bulk_create([ending.log_end])
            Checkpoint.objects.filter(response=row).delete()
        if turn is not None:
            _store(row, status, ending, turn, change)
        else:
            _remove(row, change)
        record_change(change)
        evicted = (
            make_room_for_responses(row.project_id) if turn is not None else Evicted(),
            make_room_for_conversations() if row.conversation_id is not None else Evicted(),
        )
    count_ending(row, status, ending)
    for eviction in evicted:
        eviction.count()
    return True


def was_finished(lease: Lease) -> bool:
    """Whether the end of this lease's attempt is stored, for a worker whose connection broke while it stored it.

    A response that is not stored is recognised by its usage record.
    """
    row = Response.objects.filter(pk=lease.response).only("attempt", "status").first()
    if row is not None:
        return row.attempt == lease.attempt and not row.is_active
    return UsageRecord.objects.filter(response_id=lease.public_id).exists()


def _remove(row: Response, change: StoreChange) -> None:
    """Remove the row of a foreground response that is not stored, and its history if nothing else refers to it."""
    note_removal()
    rows = Response.objects.filter(pk=row.pk)
    rows._raw_delete(rows.db)
    change.response_bytes -= sweep_turns([row.parent_id]).total()


def _store(row: Response, status: Status, ending: Ending, turn: Turn | None, change: StoreChange) -> None:
    """Turn the job's row into the stored response."""
    body = orjson.dumps({key: value for key, value in ending.response.items() if key != "output"})
    if not ending.is_too_large:
        refuse_too_large(history_bytes(turn) + len(body), background=row.background)
    change.responses += 1
    change.response_bytes += len(body)
    Response.objects.filter(pk=row.pk).update(
        status=status,
        turn=turn,
        parent=None,
        body=body.decode(),
        request="",
        worker="",
        lease_until=None,
        reader="",
        completed_at=row.now,  # type: ignore[attr-defined]
        expires_at=expiry(row),
        used_at=row.now,  # type: ignore[attr-defined]
        input_tokens=ending.input_tokens,
        cached_tokens=ending.cached_tokens,
        output_tokens=ending.output_tokens,
    )


def count_ending(row: Response, status: Status, ending: Ending) -> None:
    """Add the ending to the counts; called after the transaction, which may have failed."""
    count(counting.GENERATIONS, status=status.value)
    if row.store and status in (Status.COMPLETED, Status.INCOMPLETE):
        count(counting.STORE_WRITES)
    if ending.is_too_large:
        count(counting.STORE_REFUSALS)
    if ending.started:
        count(counting.INPUT_TOKENS, ending.input_tokens + ending.spent.input)
        count(counting.CACHED_TOKENS, ending.cached_tokens + ending.spent.cached)
        count(counting.OUTPUT_TOKENS, ending.output_tokens + ending.spent.output)
        if ending.first_token_ms is not None:
            observe(counting.FIRST_TOKEN, ending.first_token_ms / 1000)
        observe(counting.DURATION, duration_ms(row) / 1000)


def duration_ms(row: Response) -> int:
    """Milliseconds from admission to the end."""
    now: datetime = row.now  # type: ignore[attr-defined]
    return max(0, round((now - row.created_at).total_seconds() * 1000))


def expiry(row: Response) -> Any:
    """The time at which a response that is stored now expires, by the database's clock; ``None`` for never."""
    if not row.store:
        return Now() + timedelta(seconds=settings.RESPONSES_BACKGROUND_EPHEMERAL_TTL_SECONDS)
    seconds = settings.RESPONSES_STORE_TTL_SECONDS
    return Now() + timedelta(seconds=seconds) if seconds else None


def record_usage(row: Response, status: Status, ending: Ending) -> None:
    """Write the accounting row."""
    UsageRecord.objects.create(
        project_id=row.project_id,
        key_id=row.key_id,
        response_id=row.public_id,
        model=row.model,
        status=status,
        created_at=row.now,  # type: ignore[attr-defined]
        input_tokens=ending.input_tokens + ending.spent.input,
        cached_tokens=ending.cached_tokens + ending.spent.cached,
        output_tokens=ending.output_tokens + ending.spent.output,
        first_token_ms=ending.first_token_ms,
        duration_ms=duration_ms(row),
    )
