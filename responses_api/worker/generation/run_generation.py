"""One running generation: engine chunks in, wire events out, and the end stored before it is told."""

import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import structlog
from django.db import Error as DatabaseError

from inference.types import Chunk, Finish, GenerationRequest
from responses_api.caller import cache_scope
from responses_api.errors import NO_RETRY, ApiError, EntryTooLarge, ServerError
from responses_api.interruptions import FAILED, StopReason
from responses_api.models import Response
from responses_api.protocol import objects, usage
from responses_api.protocol.objects.compaction import COMPACTION_OBJECT
from responses_api.services.jobs.finish_response import Ending, finish_response, was_finished
from responses_api.services.jobs.leases import Lease
from responses_api.services.jobs.remove_jobs import remove_jobs
from responses_api.services.jobs.token_counts import TokenCounts
from responses_api.services.prompts.blobs import seal_reasoning
from responses_api.services.prompts.reasoning_echo import remember_thinking
from responses_api.streaming import (
    AnswerWriter,
    CompactionBuilder,
    Event,
    Outcome,
    ResponseBuilder,
    encode_event,
)

from .check_answer import check_answer
from .database_clock import DatabaseClock
from .prepare_generation import Compacting, Prepared
from .told_events import ToldEvents

log = structlog.get_logger(__name__)

NOT_STORED = "The server could not store this response. Send the request again."
INVALID = "The server generated an answer that is not what `text.format` or `tools` ask for. Send the request again."

STORE_TRIES = 5
STORE_PAUSE_SECONDS = 0.5


class Generation:
    """A row that this worker holds, from its claim to its end.

    Methods are called by one thread at a time, in the order ``begin``, ``feed``…, ``close``. Where a history is
    compacted first, ``begin`` and ``feed``… come once for each summary, with ``compacted`` after each; ``refuse`` ends
    it at any point before it has been accepted. Readers get every event through the bus; a reader of the whole object
    gets the last one only.
    """

    is_job = False
    """Whether it runs in the background."""

    def __init__(self, *, row: Response, lease: Lease) -> None:
        self.lease = lease
        self.model = row.model
        self.request_id = f"{row.public_id}.{lease.attempt}"
        self.sequence_id = ""
        """What the engine knows by the name of now: the answer, or a summary before it. Empty before there is one."""
        self.created_at: datetime = row.created_at
        self._clock = DatabaseClock(row.claimed_at)  # type: ignore[attr-defined]
        self.stop_reason: StopReason | None = None
        self._stopping = threading.Lock()
        self._stream = row.stream
        self.told = ToldEvents(lease, whole=not row.stream)
        self._owner = cache_scope(project_id=row.project_id, key_id=row.key_id)
        self._refusal: ApiError | None = None
        """What a reader of the whole object is told when the response has failed."""
        self._prepared: Prepared | None = None
        self._compacting: Compacting | None = None
        self._builder: ResponseBuilder | CompactionBuilder | None = None
        self._writer: AnswerWriter | None = None
        self._started = False
        self._counts = TokenCounts()
        self._first_token_ms: int | None = None

    def stop(self, reason: StopReason) -> None:
        """End it early; the first reason counts. Any thread may call. Whoever runs it sees that :meth:`is_to_stop`."""
        with self._stopping:
            self.stop_reason = self.stop_reason or reason

    def is_to_stop(self) -> bool:
        """Whether it is to end early."""
        return self.stop_reason is not None

    def why_interrupted(self) -> str:
        """The sentence for a client whose request ended before it was accepted."""
        return self.stop_reason.sentence if self.stop_reason is not None else FAILED

    def interruption(self) -> ServerError:
        """The same as an error. What took too long once would again."""
        retry = NO_RETRY if self.stop_reason is StopReason.TIMEOUT else None
        return ServerError(self.why_interrupted(), headers=retry)

    def refuse(self, error: ApiError) -> None:
        """Tell the reader that the request can't be run, and forget the job."""
        try:
            remove_jobs(self.lease.rows())
        finally:
            # A row that can't be removed now is found when its lease has run out.
            self.told.refuse(error)

    def let_go(self) -> None:
        """It has ended, however it did: a history that was being compacted need not be held any longer."""
        self._compacting = None

    @property
    def is_compacting(self) -> bool:
        """Whether a summary is being generated: the request is not accepted yet."""
        return self._compacting is not None

    def begin(self, prepared: Prepared | Compacting) -> GenerationRequest | None:
        """What to generate next: a summary, or the answer, with which the stream opens. ``None`` for neither."""
        if isinstance(prepared, Compacting):
            self._compacting = prepared
            step = prepared.next()
            if isinstance(step, GenerationRequest):
                self.sequence_id = step.id
                return step
            self._compacting, prepared = None, step
        self.sequence_id = self.request_id
        self._prepared = prepared
        return self._open(prepared)

    def compacted(self) -> GenerationRequest | None:
        """A summary has ended; what to generate next, see :meth:`begin`."""
        assert self._compacting is not None
        self._compacting.take()
        return self.begin(self._compacting)

    def _open(self, prepared: Prepared) -> GenerationRequest | None:
        """Open the stream; what to generate for it."""
        self._publish(self._opening_events(prepared))
        return prepared.generation

    def _opening_events(self, prepared: Prepared) -> list[Event]:
        """Make the builder; its events up to the answer."""
        if prepared.body["object"] == COMPACTION_OBJECT:
            self._builder = CompactionBuilder(prepared.body)
            return []
        request, seal = prepared.request, None
        if request is not None and request.wants_encrypted_reasoning:
            seal = partial(seal_reasoning, owner=self._owner)
        answers = prepared.generation is not None
        builder = ResponseBuilder(prepared.body, queued=self.is_job, answers=answers, seal=seal)
        self._builder = builder
        if prepared.parser is not None:
            logprobs = request is not None and request.wants_logprobs
            self._writer = AnswerWriter(builder, prepared.parser, logprobs=logprobs)
        events = builder.start()
        done = prepared.compacted
        if done is not None:
            tokens = (done.tokens_before, done.tokens_after) if done.announced else None
            events += builder.compaction(done.encrypted_content, tokens=tokens)
        return events

    def feed(self, chunks: Sequence[Chunk]) -> Finish | None:
        """Take what the engine made since the last call; says how the sequence ended, if it did."""
        self._started = self._started or any(chunk.started for chunk in chunks)
        if self._compacting is not None:
            self._compacting.feed(chunks)
            return chunks[-1].finish
        self._counts.count(chunks)
        if self._first_token_ms is None and self._counts.output:
            self._first_token_ms = self._age_ms()
        if self._writer is not None and (events := self._writer.feed(chunks)):
            self._publish(events)
        return chunks[-1].finish

    def close(self, finish: Finish, *, error: str = "") -> None:
        """Store the end, then tell it. Without the lease nothing is written, and nothing told."""
        assert self._builder is not None
        self._tell_rest()
        reason = str(self.stop_reason or "")
        if finish == "error":
            reason = reason or "engine"
        if finish == "stop" and self._has_invalid_answer():
            finish, error, reason = "error", INVALID, "invalid_answer"
        outcome = self._outcome(finish)
        if self.stop_reason is StopReason.TIMEOUT:
            self._refusal = self.interruption()
        try:
            events, stored = self._end_stored(self._builder, outcome, error)
        except DatabaseError:
            log.exception("generation.not_stored", response=self.lease.public_id)
            reason = "not_stored"
            events, stored = self._unstored()
        if stored and self.stop_reason is not StopReason.LEFT:
            self._remember_thinking()
            self._publish(events, last=True, reason="too_large" if isinstance(self._refusal, EntryTooLarge) else reason)

    def _unstored(self) -> tuple[list[Event], bool]:
        """The end of a response that could not be stored, and whether to tell it."""
        return self._failed(NOT_STORED, usage=None), True

    def _tell_rest(self) -> None:
        """Tell what was held back of the answer."""
        held = self._writer.flush() if self._writer is not None else []
        if held:
            self._publish(held)

    def _end_stored(
        self, builder: ResponseBuilder | CompactionBuilder, outcome: Outcome, error: str
    ) -> tuple[list[Event], bool]:
        """The last events, and whether the end was stored. An answer too large to be stored is one that failed."""
        events = self._end(builder, outcome, error)
        response = builder.snapshot()
        try:
            return events, self._store(response, events)
        except EntryTooLarge as refusal:
            log.warning("generation.too_large", response=self.lease.public_id)
            self._refusal = EntryTooLarge(refusal.message, param=refusal.param)
            events = self._failed(refusal.message, usage=response["usage"])
            return events, self._store(events[-1]["response"], events, is_too_large=True)

    def _failed(self, message: str, *, usage: objects.Usage | None) -> list[Event]:
        """The end of a response of which nothing is stored: another one than was made, and not told."""
        assert self._builder is not None
        return self._builder.fail_instead({"code": "server_error", "message": message}, usage=usage)

    def _remember_thinking(self) -> None:
        prepared = self._prepared
        if self._writer is None or self._builder is None or not self._writer.reasoning_tokens:
            return
        if prepared is not None and prepared.history is not None:
            remember_thinking(
                worker=self.lease.worker,
                model=self.model,
                scope=prepared.scope,
                history=prepared.history,
                output=self._builder.snapshot()["output"],
            )

    def _has_invalid_answer(self) -> bool:
        """Whether the answer is not what was asked for, in its JSON or its calls: our fault, told in the log."""
        assert self._builder is not None
        assert self._prepared is not None
        if self._writer is None or self._prepared.request is None:
            return False
        flaw = "A call was not completed." if self._writer.is_cut_in_call else ""
        if self._prepared.generation is not None and self._prepared.generation.constraint is not None:
            flaw = flaw or check_answer(self._builder.snapshot(), self._prepared.request)
        if flaw:
            log.error("generation.invalid_answer", response=self.lease.public_id, flaw=flaw)
        return bool(flaw)

    def _outcome(self, finish: Finish) -> Outcome:
        if finish == "stop":
            return "completed"
        if finish == "length":
            return "incomplete"
        return "cancelled" if self.stop_reason in (StopReason.LEFT, StopReason.CANCELLED) else "failed"

    def _end(self, builder: ResponseBuilder | CompactionBuilder, outcome: Outcome, error: str) -> list[Event]:
        assert self._prepared is not None
        return builder.finish(
            outcome,
            error={"code": "server_error", "message": error or self.why_interrupted()},
            usage=self._usage(self._prepared),
            completed_at=int(self._clock.now().timestamp()),
        )

    def _usage(self, prepared: Prepared) -> objects.Usage:
        """Of the answer, and of the compaction where that is all."""
        counts, read = self._counts, prepared.prompt_tokens
        if prepared.generation is None:
            counts, read = prepared.spent, prepared.spent.input
        return usage(
            input_tokens=read,
            cached_tokens=counts.cached,
            cache_write_tokens=counts.cache_write,
            output_tokens=counts.output,
            reasoning_tokens=self._writer.reasoning_tokens if self._writer is not None else 0,
        )

    def _store(self, response: Mapping[str, Any], events: list[Event], *, is_too_large: bool = False) -> bool:
        """Store the end that ``events`` tell of; False without the lease."""
        ending = self._ending(response, is_too_large=is_too_large)
        try:
            return finish_response(lease=self.lease, ending=ending)
        except DatabaseError as error:
            log.warning("generation.store_retry", response=self.lease.public_id, error=str(error))
        for _ in range(STORE_TRIES - 2):
            time.sleep(STORE_PAUSE_SECONDS)
            try:
                return self._store_again(ending)
            except DatabaseError as error:
                log.warning("generation.store_retry", response=self.lease.public_id, error=str(error))
        time.sleep(STORE_PAUSE_SECONDS)
        return self._store_again(ending)

    def _store_again(self, ending: Ending) -> bool:
        """The lease is over also when the end was stored and only its confirmation was lost."""
        return finish_response(lease=self.lease, ending=ending) or was_finished(self.lease)

    def _ending(self, response: Mapping[str, Any], *, is_too_large: bool) -> Ending:
        assert self._prepared is not None
        return Ending(
            response=response,
            input_items=self._prepared.input_items,
            input_tokens=self._prepared.prompt_tokens,
            cached_tokens=self._counts.cached,
            output_tokens=self._counts.output,
            spent=self._prepared.spent,
            first_token_ms=self._first_token_ms,
            started=self._started,
            is_too_large=is_too_large,
        )

    def _publish(self, events: list[Event], *, last: bool = False, reason: str = "") -> None:
        if not last:
            if self._stream:  # else every message would wake a reader that waits for the end alone
                self.told.tell([encode_event(event) for event in events])
            return
        if not self._stream:
            events = events[-1:]
        error = self._refusal if events[-1]["type"] == "response.failed" else None
        self.told.end([encode_event(event) for event in events], error=error, reason=reason)

    def _age_ms(self) -> int:
        return max(0, round((self._clock.now() - self.created_at).total_seconds() * 1000))
