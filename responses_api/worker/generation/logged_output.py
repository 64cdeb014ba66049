"""The output of a background job: persisted first, then published, and resumed from its log."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Protocol

import orjson
import structlog
from django.db import Error as DatabaseError

from inference.types import Chunk, Finish
from responses_api.errors import ApiError, EntryTooLarge, InvalidRequest, Overloaded, RequestTooLarge
from responses_api.interruptions import StopReason
from responses_api.models import Checkpoint, EventBatch, Response
from responses_api.protocol.objects import ResponseError, Usage
from responses_api.services.jobs.end_job import cut_short, end_job, is_oversized, publish_job_events
from responses_api.services.jobs.event_log import (
    LogCursor,
    all_batches,
    decode_batch,
    decoded_events,
    mark_in_progress,
    store_checkpoint,
)
from responses_api.services.jobs.leases import Lease, release_as_lost, release_lease
from responses_api.streaming import Answer, EncodedEvent, Event, Outcome, ResponseBuilder, encode_event
from responses_api.streaming.chunk_record import RECORD_VERSION, decode_feeds
from responses_api.streaming.token_counts import TokenCounts

from .ending import AnswerEnd
from .prepare_generation import CompactedHistory, Continuation, Prepared
from .stop import Stop
from .stopwatch import Stopwatch

log = structlog.get_logger(__name__)

START_EVENTS = 3
"""`response.created`, `response.queued`, `response.in_progress`."""
NOT_CONTINUED = (
    "The server lost the worker that generated this response, and no other can resume it. Send the request again."
)


class CannotContinue(Exception):
    """Readers have seen other events than this worker makes from the same tokens."""


class Log(Protocol):
    """A job's log: events are persisted in order, and published after that."""

    cursor: LogCursor

    def add(self, events: Sequence[EncodedEvent], chunks: Sequence[Chunk]) -> None: ...

    def drain(self) -> bool: ...

    def batch(self, events: Sequence[EncodedEvent]) -> EventBatch: ...


class LoggedOutput:
    """Only persisted events are published, so a job that has lost its lease publishes nothing more."""

    published = None

    def __init__(self, *, row: Response, lease: Lease, log: Log, stop: Stop) -> None:
        self._row = row
        self._lease = lease
        self._log = log
        self._stop = stop
        self._stopwatch = Stopwatch(row)
        self._digest = ""
        self._batches: list[EventBatch] = []
        """The log of earlier workers."""
        self._continuation: Continuation | None = None
        self._answer: Answer | None = None
        self._prepared: Prepared | None = None
        self._final: Chunk | None = None
        """The last chunk of a sequence that has ended."""
        self._is_resumed = False
        self._has_begun = False
        """Whether the database knows that this worker has begun the job."""
        self._gap = ""
        """Why the job can't be resumed: it has events that are not in its log, and ends without content."""

    # The beginning

    def start(self, digest: str) -> Continuation | None:
        """Mark the job as running. Raises :class:`CannotContinue` when its checkpoint was made by another model or
        another version of this program.
        """
        self._digest = digest
        self._batches = all_batches(self._row.pk)
        self._log.cursor = LogCursor.after(self._batches)
        started = encoded(ResponseBuilder(self._row.body_dict(), queued=True).start())
        first, new = self._next_event, started[self._next_event :]
        if not mark_in_progress(self._lease, self._log.batch(new) if new else None):
            self._stop.give(StopReason.LOST)
            return None
        self._has_begun = True
        if new:
            publish_job_events(self._lease.public_id, first, new)
        self._continuation = self._read_checkpoint()
        return self._continuation

    def _read_checkpoint(self) -> Continuation | None:
        checkpoint = Checkpoint.objects.filter(response=self._row).first()
        if checkpoint is None:
            return None
        if checkpoint.digest != self._digest or checkpoint.version != RECORD_VERSION:
            if self._next_event > START_EVENTS:
                raise CannotContinue
            return None
        compacted = orjson.loads(checkpoint.compacted) if checkpoint.compacted else None
        return Continuation(
            prompt=tuple(orjson.loads(checkpoint.prompt)),
            compacted=CompactedHistory(**compacted) if compacted else None,
            spent=TokenCounts(**orjson.loads(checkpoint.spent)),
        )

    def open(self, answer: Answer, prepared: Prepared, events: Sequence[Event]) -> None:
        """Persist a checkpoint; or, with an earlier worker's checkpoint, replay the log into the answer."""
        self._answer, self._prepared = answer, prepared
        if self._continuation is not None:
            self._replay(answer, encoded(events))
            return
        first, new = self._next_event, encoded(events)[self._next_event :]
        checkpoint = Checkpoint(
            response=self._row,
            digest=self._digest,
            version=RECORD_VERSION,
            prompt=orjson.dumps(prepared.generation.prompt if prepared.generation else ()).decode(),
            compacted=orjson.dumps(asdict(prepared.compacted)).decode() if prepared.compacted else "",
            spent=orjson.dumps(asdict(prepared.spent)).decode(),
        )
        if not store_checkpoint(self._lease, checkpoint, self._log.batch(new) if new else None):
            self._stop.give(StopReason.LOST)
        elif new:
            publish_job_events(self._lease.public_id, first, new)

    def _replay(self, answer: Answer, events: list[EncodedEvent]) -> None:
        """Feed the persisted chunks again. Raises :class:`CannotContinue` when the events differ from the persisted
        ones.
        """
        assert answer.is_generated or not any(batch.chunks for batch in self._batches)
        for batch in self._batches:
            for chunks in decode_feeds(batch.chunks):
                events += encoded(answer.feed(chunks))
        seen = [event for batch in self._batches for event in decode_batch(batch.data)]
        if events[len(seen) :] or events[START_EVENTS:] != seen[START_EVENTS:]:
            raise CannotContinue
        self._is_resumed = answer.has_started

    # The middle

    def wait(self, what_for: str) -> None:
        """Tell nobody: the job's status says that it has not begun."""

    def feed(self, chunks: Sequence[Chunk]) -> None:
        """Feed the answer, and add to the log.

        The last chunk waits until it is known whether the job ends with it, since it releases text that was held back.
        """
        answer = self._answer
        assert answer is not None
        if self._gap:
            return
        if chunks[-1].finish is not None:
            self._final, chunks = chunks[-1], chunks[:-1]
        new = [chunk for chunk in chunks if not (chunk.started and answer.has_started)]
        try:
            events = encoded(answer.feed(new))
        except Exception:  # raised again, but the log must have no gap
            self._give_up(StopReason.ERROR)
            raise
        if not self._is_resumed:
            self._stopwatch.note(answer)
        if any(is_oversized(event) for event in events):
            self._give_up(StopReason.TOO_LARGE)
        elif new:
            self._log.add(events, new)

    def _give_up(self, reason: StopReason) -> None:
        self._gap = reason.sentence
        self._stop.give(reason)

    # The end

    def close(self, finish: Finish, error: str) -> None:
        """Store the end, then publish it; or let another worker resume the job, when this one stops."""
        if self._stop.reason is StopReason.LOST or not self._log.drain():
            self._note_loss()
        elif finish == "cancelled" and self._stop.reason in (None, StopReason.SHUTDOWN):
            # This worker is stopping, or its engine has stopped.
            release_lease(self._lease)
        elif finish == "cancelled" and self._stop.reason is StopReason.NOT_LOADED:
            log.warning("job.put_back", response=self._lease.public_id, reason=self._stop.sentence)
            release_lease(self._lease, pause=True)
        elif finish == "error" and self._stop.reason is None and release_as_lost(self._lease):
            # The failure of an engine is a lost attempt, as the end of the whole process is.
            log.warning("job.engine_failed", response=self._lease.public_id, error=error)
        else:
            self._end(finish, error)

    def _end(self, finish: Finish, error: str) -> None:
        assert self._answer is not None
        assert self._prepared is not None
        end = AnswerEnd(
            lease=self._lease,
            stop=self._stop,
            stopwatch=self._stopwatch,
            model=self._row.model,
            prepared=self._prepared,
            answer=self._answer,
        )
        try:
            last = self._store_without_content(end, self._gap) if self._gap else self._store(end, finish, error)
        except DatabaseError:
            # Nothing is published: when the lease has expired, another worker resumes the job.
            log.exception("generation.not_stored", response=self._lease.public_id)
            return
        if last:
            end.remember_thinking()
            publish_job_events(self._lease.public_id, self._next_event, last, last=True)

    def _store(self, end: AnswerEnd, finish: Finish, error: str) -> list[EncodedEvent]:
        """Store the end with the last events, and return these; none without the lease."""
        rest = self._rest(end.answer)
        events = encoded([*rest, *end.events(end.judge(finish, error))])
        response = end.answer.snapshot()
        try:
            if any(is_oversized(event) for event in events):
                raise EntryTooLarge(StopReason.TOO_LARGE.sentence)
            return events if end.store(response, log_end=self._log_end(events)) else []
        except EntryTooLarge as refusal:
            log.warning("generation.too_large", response=self._lease.public_id)
            return self._store_without_content(end, refusal.message, usage=response["usage"])

    def _rest(self, answer: Answer) -> list[Event]:
        """The events of the text that was held back: they are persisted with the end."""
        events = answer.feed([self._final]) if self._final is not None and answer.is_generated else []
        return [*events, *answer.flush()]

    def _store_without_content(self, end: AnswerEnd, message: str, *, usage: Usage | None = None) -> list[EncodedEvent]:
        """The same for a job whose answer can't be stored: it fails after the events that are persisted."""
        published = decoded_events(all_batches(self._row.pk))
        events, response = cut_short(self._row, published, message=message, usage=usage)
        last = encoded(events)
        stored = end.store(response, is_too_large=True, log_end=self._log_end(last))
        return last if stored else []

    def _log_end(self, events: list[EncodedEvent]) -> EventBatch:
        """The last batch of the log, by a copy of the cursor, since another end may be stored instead."""
        cursor, lease = replace(self._log.cursor), self._lease
        return cursor.batch(events, response=lease.response, attempt=lease.attempt, is_end=True)

    def refuse(self, error: ApiError) -> None:
        """The job ends without an answer, since it can't be run or was cancelled; or it is released, since this worker
        stops.
        """
        if self._stop.reason is StopReason.LOST:
            self._note_loss()
            return
        if self._stop.reason is StopReason.SHUTDOWN:
            release_lease(self._lease, begun=self._has_begun)
            return
        if isinstance(error, Overloaded) and self._stop.reason in (None, StopReason.NOT_LOADED):
            # A resource is short now: the worker that claims the job later may have it.
            log.warning("job.put_back", response=self._lease.public_id, reason=error.message)
            release_lease(self._lease, begun=self._has_begun, pause=True)
            return
        outcome: Outcome = "cancelled" if self._stop.reason is StopReason.CANCELLED else "failed"
        code = "invalid_prompt" if isinstance(error, (InvalidRequest, RequestTooLarge)) else "server_error"
        cause: ResponseError = {"code": code, "message": error.message}  # type: ignore[typeddict-item]
        end_job(row=self._row, lease=self._lease, outcome=outcome, error=cause)

    def _note_loss(self) -> None:
        """Nothing is written: this worker has not renewed its lease in time."""
        log.warning("job.lease_lost", response=self._lease.public_id, attempt=self._lease.attempt)

    @property
    def _next_event(self) -> int:
        """The number of the first event that is not persisted."""
        return self._log.cursor.next_event


def encoded(events: Sequence[Event]) -> list[EncodedEvent]:
    """The events as the log has them."""
    return [encode_event(event) for event in events]
