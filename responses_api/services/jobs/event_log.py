"""The event log of background jobs: written in batches under a lease, read in pages, removed a while after the end."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import orjson
from django.conf import settings
from django.db import transaction
from django.db.models import F, Min, QuerySet
from django.db.models.functions import Now

from inference.types import Chunk
from responses_api.database.write_ahead_log import note_removal
from responses_api.models import Checkpoint, EventBatch, Response, Status
from responses_api.models.store.response import ACTIVE
from responses_api.protocol.objects import StreamEvent
from responses_api.streaming import EncodedEvent
from responses_api.streaming.chunk_record import encode_feeds, holds_tokens

from .leases import Lease

PAGE_BATCHES = 200
PAGE_BYTES = 1 << 20
EXPIRY_LOGS = 50
EXPIRY_BATCHES = 200


@dataclass(slots=True)
class LogCursor:
    """The position in a job's log at which the next batch is written."""

    number: int = 0
    next_event: int = 0
    total_bytes: int = 0

    @classmethod
    def after(cls, batches: Sequence[EventBatch]) -> "LogCursor":
        """The cursor at the end of a log that consists of these batches."""
        if not batches:
            return cls()
        newest = batches[-1]
        return cls(number=newest.number + 1, next_event=newest.last + 1, total_bytes=newest.total_bytes)

    def batch(
        self,
        events: Sequence[EncodedEvent],
        *,
        response: int,
        attempt: int,
        feeds: Sequence[Sequence[Chunk]] = (),
        is_end: bool = False,
    ) -> EventBatch:
        """Make the next batch, which the caller writes; the cursor moves behind it.

        ``feeds`` are the chunks from which the events were made, by what was fed together.
        """
        data = encode_batch(events)
        self.total_bytes += len(data.encode())
        batch = EventBatch(
            response_id=response,
            number=self.number,
            attempt=attempt,
            first=self.next_event,
            last=self.next_event + len(events) - 1,
            is_end=is_end,
            data=data,
            chunks=encode_feeds(feeds),
            total_bytes=self.total_bytes,
        )
        self.number += 1
        self.next_event += len(events)
        return batch


def encode_batch(events: Iterable[EncodedEvent]) -> str:
    """One line per event: its JSON contains no line break, and its type no space."""
    return "\n".join(f"{kind} {text}" for kind, text in events)


def decode_batch(data: str) -> list[EncodedEvent]:
    """The events of a batch."""
    return [(kind, text) for kind, _, text in (line.partition(" ") for line in data.split("\n") if line)]


# Writing


@dataclass(frozen=True, slots=True)
class Flush:
    """Batches of one job that are to be written."""

    lease: Lease
    batches: list[EventBatch]

    @property
    def has_tokens(self) -> bool:
        """Whether the batches contain tokens that were not persisted before."""
        return any(holds_tokens(batch.chunks) for batch in self.batches)


def append_batches(flushes: Sequence[Flush]) -> set[Lease]:
    """Write the batches of several jobs in one transaction. Returns the lost leases, whose batches are not written.

    Idempotent: a batch is stored once, even if it is written again because the outcome of the first try is unknown.
    """
    with transaction.atomic():
        rows = (
            Response.objects.select_for_update(no_key=True)
            .filter(pk__in=[flush.lease.response for flush in flushes], status__in=ACTIVE)
            .order_by("pk")
            .values_list("pk", "worker", "attempt", "lost_attempts")
        )
        claims = {pk: (worker, attempt, lost) for pk, worker, attempt, lost in rows}
        valid = [flush for flush in flushes if _is_valid(flush.lease, claims)]
        EventBatch.objects.bulk_create([batch for flush in valid for batch in flush.batches], ignore_conflicts=True)
        recovered = [flush.lease.response for flush in valid if flush.has_tokens and claims[flush.lease.response][2]]
        if recovered:
            Response.objects.filter(pk__in=recovered).update(lost_attempts=0)
    return {flush.lease for flush in flushes} - {flush.lease for flush in valid}


def _is_valid(lease: Lease, claims: dict[int, tuple[str, int, int]]) -> bool:
    """Whether the lease is still valid, given the claims that were just read under the rows' locks."""
    return claims.get(lease.response, ("", 0, 0))[:2] == (lease.worker, lease.attempt)


def begin_log(response: Response, events: Sequence[EncodedEvent]) -> None:
    """Write a job's first batch, at its admission."""
    LogCursor().batch(events, response=response.pk, attempt=0).save(force_insert=True)


def mark_in_progress(lease: Lease, batch: EventBatch | None) -> bool:
    """Mark a job as in progress, and write the event of that unless it was published. False when the lease is lost.

    Until a token is persisted, this counts as a lost attempt.
    """
    with transaction.atomic():
        if not lease.rows().update(status=Status.IN_PROGRESS, lost_attempts=F("lost_attempts") + 1):
            return False
        if batch is not None:
            EventBatch.objects.bulk_create([batch], ignore_conflicts=True)
    return True


def store_checkpoint(lease: Lease, checkpoint: Checkpoint, batch: EventBatch | None) -> bool:
    """Persist how the job was prepared, with the events of that. False when the lease is lost."""
    with transaction.atomic():
        if not lease.rows().select_for_update(no_key=True).exists():
            return False
        # A job can't be resumed from the chunks of another model.
        EventBatch.objects.filter(response_id=lease.response).exclude(chunks="").update(chunks="")
        Checkpoint.objects.filter(response_id=lease.response).delete()
        checkpoint.save(force_insert=True)
        if batch is not None:
            EventBatch.objects.bulk_create([batch], ignore_conflicts=True)
    return True


# Reading


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a log, from the requested event on."""

    events: list[EncodedEvent]
    is_end: bool
    """Whether the job's last event is the last of these, or precedes them."""
    is_behind: bool = False
    """The requested events are no longer available."""
    is_gone: bool = False
    """The log was removed."""


def all_batches(response: int) -> list[EventBatch]:
    """A job's whole log."""
    return list(EventBatch.objects.filter(response_id=response).order_by("number"))


def readable_range(response: int) -> tuple[int, int] | None:
    """The number of the first event that can be read, and that of the next one to write; ``None`` without a log."""
    newest = EventBatch.objects.filter(response_id=response).order_by("-number").only("last", "total_bytes").first()
    if newest is None:
        return None
    following = newest.last + 1
    first = max(0, following - settings.RESPONSES_EVENTS_MAX_COUNT)
    if newest.total_bytes > settings.RESPONSES_EVENTS_MAX_BYTES:
        within = EventBatch.objects.filter(
            response_id=response, total_bytes__gt=newest.total_bytes - settings.RESPONSES_EVENTS_MAX_BYTES
        )
        first = max(first, within.aggregate(first=Min("first"))["first"] or 0)
    return first, following


def read_page(response: int, first: int) -> Page:
    """Events from ``first`` on, at most a page of them; empty when there are no more yet."""
    readable = readable_range(response)
    if readable is None:
        return Page([], is_end=True, is_gone=True)
    if first < readable[0]:
        return Page([], is_end=False, is_behind=True)
    batches = EventBatch.objects.filter(response_id=response, last__gte=first).order_by("number")
    events: list[EncodedEvent] = []
    is_end = False
    for batch in batches.filter(number__lte=_page_end(batches)).only("first", "is_end", "data"):
        events += decode_batch(batch.data)[max(0, first - batch.first) :]
        is_end = batch.is_end
    if not events:
        # Only an end before ``first``: one that was written since the query above is still to be read.
        is_end = EventBatch.objects.filter(response_id=response, is_end=True, last__lt=first).exists()
    return Page(events, is_end=is_end)


def _page_end(batches: QuerySet[EventBatch]) -> int:
    """The number of the last batch of a page: at most ``PAGE_BYTES`` are read at once, but at least one batch."""
    sizes = list(batches.values_list("number", "total_bytes")[:PAGE_BATCHES])
    within = [number for number, total in sizes if total - sizes[0][1] <= PAGE_BYTES]
    return within[-1] if within else -1


def is_streamable(row: Response) -> bool:
    """Whether a job's events can be streamed: it runs, or ended less than RESPONSES_EVENT_TTL_SECONDS ago."""
    if not row.background:
        return False
    recent = Response.objects.filter(pk=row.pk).exclude(
        completed_at__lte=Now() - timedelta(seconds=settings.RESPONSES_EVENT_TTL_SECONDS)
    )
    return recent.exists() and EventBatch.objects.filter(response_id=row.pk).exists()


def expire_event_logs(pause: Callable[[], None] = lambda: None) -> int:
    """Remove the logs of jobs that ended too long ago; returns the number of batches removed.

    ``pause`` is called after each statement, which removes a bounded number of rows.
    """
    limit = Now() - timedelta(seconds=settings.RESPONSES_EVENT_TTL_SECONDS)
    # Found by their first batch, since there are fewer logs than stored responses. It is therefore removed last.
    ended = EventBatch.objects.filter(number=0, response__completed_at__lte=limit).order_by()
    total = 0
    while rows := list(ended.values_list("response_id", flat=True)[:EXPIRY_LOGS]):
        logs = EventBatch.objects.filter(response_id__in=rows).order_by()
        while later := list(logs.filter(number__gt=0).values_list("pk", flat=True)[:EXPIRY_BATCHES]):
            total += EventBatch.objects.filter(pk__in=later).delete()[0]
            pause()
        total += logs.filter(number=0).delete()[0]
        note_removal()
        pause()
    return total


def decoded_events(batches: Iterable[EventBatch]) -> list[StreamEvent]:
    """All events of these batches, as objects."""
    return [orjson.loads(text) for batch in batches for _, text in decode_batch(batch.data)]
