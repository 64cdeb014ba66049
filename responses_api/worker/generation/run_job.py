"""A background job on a worker: what :class:`Generation` does, but told only once it is kept, and gone on with."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Protocol

import orjson
import structlog

from inference.types import Chunk, Finish, GenerationRequest
from responses_api.errors import ApiError, EntryTooLarge, InvalidRequest, Overloaded, RequestTooLarge
from responses_api.interruptions import StopReason
from responses_api.models import Checkpoint, EventBatch, Response
from responses_api.protocol import objects
from responses_api.protocol.objects import ResponseError
from responses_api.services.jobs.end_job import cut_short, end_job, is_oversized, tell_readers
from responses_api.services.jobs.event_log import (
    LogCursor,
    all_batches,
    decode_batch,
    decoded_events,
    keep_checkpoint,
    mark_in_progress,
)
from responses_api.services.jobs.finish_response import Ending
from responses_api.services.jobs.leases import Lease, release_as_lost, release_lease
from responses_api.services.jobs.token_counts import TokenCounts
from responses_api.streaming import (
    CompactionBuilder,
    EncodedEvent,
    Event,
    Outcome,
    ResponseBuilder,
    encode_event,
)
from responses_api.streaming.chunk_record import RECORD_VERSION, decode_chunks

from .prepare_generation import CompactedHistory, Continuation, Prepared
from .run_generation import Generation

log = structlog.get_logger(__name__)

START_EVENTS = 3
"""`response.created`, `response.queued`, `response.in_progress`."""
NOT_CONTINUED = (
    "The server lost the worker that generated this response, and none can go on with it. Send the request again."
)


class CannotContinue(Exception):
    """What readers have seen is not what this worker would make of the same tokens."""


class Log(Protocol):
    """Where a job's events go: written in order, and told once they are."""

    cursor: LogCursor

    def add(self, events: Sequence[EncodedEvent], chunks: Sequence[Chunk]) -> None: ...

    def drain(self) -> bool: ...

    def batch(self, events: Sequence[EncodedEvent]) -> EventBatch: ...


class JobGeneration(Generation):
    """A background row that this worker holds. The log decides: a job that lost its lease tells nothing any more."""

    is_job = True

    def __init__(self, *, row: Response, lease: Lease, log: Log) -> None:
        super().__init__(row=row, lease=lease)
        self._row = row
        self._log = log
        self._digest = ""
        self._kept: list[EventBatch] = []
        self._continuation: Continuation | None = None
        self._tokens: list[int] = []
        self._sequences = 0
        self._final: Chunk | None = None
        self._is_resumed = False
        self._has_begun = False
        """Whether the database knows that this worker has begun it."""
        self._has_started = False
        """Whether the engine has begun the answer; a summary before it does not count."""
        self._rest: list[Event] = []
        """The events of what was held back at the end."""
        self._last_events: list[EncodedEvent] = []
        """These and what ends the stream, as they are kept."""
        self._unkept = ""
        """Why the job can't go on: it has events that are not in its log, and ends without content."""
        if row.cancel_requested_at is not None:
            self.stop(StopReason.CANCELLED)

    # The beginning

    def start(self, digest: str) -> Continuation | None:
        """The job has begun on a model with this digest: tell so unless it was told. What it is to go on from, if
        there is anything.

        Raises :class:`CannotContinue` when that was made by another model or another version of this program.
        """
        self._digest = digest
        self._kept = all_batches(self._row.pk)
        self._log.cursor = LogCursor.after(self._kept)
        started = [encode_event(event) for event in ResponseBuilder(self._row.body_dict(), queued=True).start()]
        untold = started[self._told() :]
        first = self._told()
        if not mark_in_progress(self.lease, self._log.batch(untold) if untold else None):
            self.stop(StopReason.LOST)
            return None
        self._has_begun = True
        if untold:
            self.tell(first, untold)
        checkpoint = Checkpoint.objects.filter(response=self._row).first()
        if checkpoint is None:
            return None
        if checkpoint.digest != digest or checkpoint.version != RECORD_VERSION:
            if self._told() > START_EVENTS:
                raise CannotContinue
            return None
        compacted = orjson.loads(checkpoint.compacted) if checkpoint.compacted else None
        self._continuation = Continuation(
            prompt=tuple(orjson.loads(checkpoint.prompt)),
            compacted=CompactedHistory(**compacted) if compacted else None,
            spent=TokenCounts(**orjson.loads(checkpoint.spent)),
        )
        return self._continuation

    def _open(self, prepared: Prepared) -> GenerationRequest | None:
        events = [encode_event(event) for event in self._opening_events(prepared)]
        if self._continuation is not None:
            self._replay(events)
        else:
            untold, first = events[self._told() :], self._told()
            checkpoint = Checkpoint(
                response=self._row,
                digest=self._digest,
                version=RECORD_VERSION,
                prompt=orjson.dumps(prepared.generation.prompt if prepared.generation else ()).decode(),
                compacted=orjson.dumps(asdict(prepared.compacted)).decode() if prepared.compacted else "",
                spent=orjson.dumps(asdict(prepared.spent)).decode(),
            )
            if not keep_checkpoint(self.lease, checkpoint, self._log.batch(untold) if untold else None):
                self.stop(StopReason.LOST)
            elif untold:
                self.tell(first, untold)
        return self._request()

    def _replay(self, events: list[EncodedEvent]) -> None:
        """Bring the builder to where readers are. Raises :class:`CannotContinue` when it would tell anything else."""
        assert self._writer is not None or not any(batch.chunks for batch in self._kept)
        for batch in self._kept:
            chunks = decode_chunks(batch.chunks)
            self._count(chunks)
            if self._writer is not None:
                events += [encode_event(event) for event in self._writer.feed(chunks)]
        told = [event for batch in self._kept for event in decode_batch(batch.data)]
        if events[len(told) :] or events[START_EVENTS:] != told[START_EVENTS:]:
            raise CannotContinue
        self._is_resumed = self._has_started

    def _request(self) -> GenerationRequest | None:
        """What the engine is to do from here on; ``None`` when there is nothing to generate."""
        assert self._prepared is not None
        if self._prepared.generation is None:
            return None
        self._sequences += 1
        self.sequence_id = f"{self.request_id}.{self._sequences}"
        return replace(self._prepared.generation, id=self.sequence_id, generated=tuple(self._tokens))

    def again(self) -> GenerationRequest | None:
        """The same sequence once more, from where it was: it was preempted."""
        self._final = None
        return self._request()

    # The middle

    def feed(self, chunks: Sequence[Chunk]) -> Finish | None:
        """Take what the engine made since the last call; says how the sequence ended, if it did.

        The last chunk waits until it is known whether the job ends with it, for it gives what was held back too.
        """
        if self._compacting is not None:
            return super().feed(chunks)
        finish = chunks[-1].finish
        if self._unkept:
            return finish
        if finish is not None:
            self._final, chunks = chunks[-1], chunks[:-1]
        new = [chunk for chunk in chunks if not (chunk.started and self._has_started)]
        self._count(new)
        if self._first_token_ms is None and self._tokens and not self._is_resumed:
            self._first_token_ms = self._age_ms()
        try:
            events = [encode_event(event) for event in self._writer.feed(new)] if self._writer is not None else []
        except Exception:  # raised again: but the log must have no gap
            self._give_up(StopReason.FAULT)
            raise
        if any(is_oversized(event) for event in events):
            self._give_up(StopReason.TOO_LARGE)
        elif new:
            self._log.add(events, new)
        return finish

    def _give_up(self, reason: StopReason) -> None:
        self._unkept = reason.sentence
        self.stop(reason)

    def _count(self, chunks: Sequence[Chunk]) -> None:
        self._has_started = self._has_started or any(chunk.started for chunk in chunks)
        self._started = self._started or self._has_started
        self._counts.count(chunks)
        self._tokens += [token for chunk in chunks for token in chunk.tokens]

    # The end

    def close(self, finish: Finish, *, error: str = "") -> None:
        """Store the end, then tell it; or let another worker go on, when this one stops."""
        if self.stop_reason is StopReason.LOST or not self._log.drain():
            self._note_loss()
            return
        if finish == "cancelled" and self.stop_reason in (None, StopReason.SHUTDOWN):
            # This worker stops, or its engine did.
            release_lease(self.lease)
            return
        if finish == "error" and not self.is_to_stop() and release_as_lost(self.lease):
            # The engine failed, which kills a job no more than the end of the whole process.
            log.warning("job.engine_failed", response=self.lease.public_id, error=error)
            return
        super().close(finish, error=error)

    def _tell_rest(self) -> None:
        """What was held back is told together with the end."""
        self._rest = []
        if self._writer is None or self._unkept:
            return
        if self._final is not None:
            self._count([self._final])
            self._rest += self._writer.feed([self._final])
        self._rest += self._writer.flush()

    def _end_stored(
        self, builder: ResponseBuilder | CompactionBuilder, outcome: Outcome, error: str
    ) -> tuple[list[Event], bool]:
        if not self._unkept:
            return super()._end_stored(builder, outcome, error)
        events = self._failed(self._unkept, usage=None)
        return events, self._store(events[-1]["response"], events, is_too_large=True)

    def _unstored(self) -> tuple[list[Event], bool]:
        """Nothing is told: when the lease has run out, another worker goes on."""
        return [], False

    def _failed(self, message: str, *, usage: objects.Usage | None) -> list[Event]:
        """After the events that are kept, which are what readers have seen."""
        self._rest = []
        return cut_short(self._row, decoded_events(all_batches(self._row.pk)), message=message, usage=usage)

    def _store(self, response: Mapping[str, Any], events: list[Event], *, is_too_large: bool = False) -> bool:
        self._last_events = [encode_event(event) for event in (*self._rest, *events)]
        return super()._store(response, events, is_too_large=is_too_large)

    def _ending(self, response: Mapping[str, Any], *, is_too_large: bool) -> Ending:
        ending = super()._ending(response, is_too_large=is_too_large)
        if any(is_oversized(event) for event in self._last_events) and not is_too_large:
            raise EntryTooLarge(StopReason.TOO_LARGE.sentence)
        # From a copy of the cursor, since the end may have to be another one.
        cursor, lease = replace(self._log.cursor), self.lease
        end = cursor.batch(self._last_events, response=lease.response, attempt=lease.attempt, is_end=True)
        return replace(ending, log_end=end)

    def refuse(self, error: ApiError) -> None:
        """The job ends without an answer: its request can't be run, or it was cancelled. Or this worker stops."""
        if self.stop_reason is StopReason.LOST:
            self._note_loss()
            return
        if self.stop_reason is StopReason.SHUTDOWN:
            release_lease(self.lease, begun=self._has_begun)
            return
        if isinstance(error, Overloaded) and not self.is_to_stop():
            # Something of the server's is short: whoever takes the job later may have it.
            log.warning("job.put_back", response=self.lease.public_id, reason=error.message)
            release_lease(self.lease, begun=self._has_begun, pause=True)
            return
        outcome: Outcome = "cancelled" if self.stop_reason is StopReason.CANCELLED else "failed"
        code = "invalid_prompt" if isinstance(error, (InvalidRequest, RequestTooLarge)) else "server_error"
        fault: ResponseError = {"code": code, "message": error.message}  # type: ignore[typeddict-item]
        end_job(row=self._row, lease=self.lease, outcome=outcome, fault=fault)

    def _note_loss(self) -> None:
        """Nothing is written: this worker was too long without renewing its lease."""
        log.warning("job.lease_lost", response=self.lease.public_id, attempt=self.lease.attempt)

    # Telling

    def _told(self) -> int:
        return self._log.cursor.next_event

    def _publish(self, events: list[Event], *, last: bool = False, reason: str = "") -> None:
        """Only the end comes here: it is kept already."""
        assert last
        self.tell(self._told(), self._last_events, last=True)

    def tell(self, first: int, events: list[EncodedEvent], *, last: bool = False) -> None:
        """Tell readers what is kept."""
        tell_readers(self.lease.public_id, first, events, last=last)
