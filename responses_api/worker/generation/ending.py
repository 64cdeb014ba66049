"""The end of a run: the outcome of its answer, and how it is stored."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from django.db import Error as DatabaseError

from inference.types import Finish
from responses_api.interruptions import StopReason
from responses_api.models import EventBatch
from responses_api.protocol import objects, usage
from responses_api.services.jobs.finish_response import Ending, finish_response, was_finished
from responses_api.services.jobs.leases import Lease
from responses_api.services.prompts.reasoning_echo import remember_thinking
from responses_api.streaming import Answer, Event, Outcome
from responses_api.streaming.events import EndedCompaction

from .check_answer import check_answer
from .prepare_generation import Prepared
from .stop import Stop
from .stopwatch import Stopwatch

log = structlog.get_logger(__name__)

INVALID = "The server generated an answer that is not what `text.format` or `tools` ask for. Send the request again."

STORE_TRIES = 5
STORE_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The outcome of an answer."""

    outcome: Outcome
    message: str
    """For the client, if it has failed."""
    reason: str
    """For the log, if it has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEnd:
    """The end of one answer: judged, written as events, and stored under the lease of its run."""

    lease: Lease
    stop: Stop
    stopwatch: Stopwatch
    model: str
    prepared: Prepared
    answer: Answer

    def judge(self, finish: Finish, error: str) -> Verdict:
        """The outcome of the answer, by how its sequence ended and why it was stopped, if it was."""
        stopped = self.stop.reason
        reason = str(stopped or ("engine" if finish == "error" else ""))
        if finish == "stop" and self._is_invalid():
            finish, error, reason = "error", INVALID, "invalid_answer"
        outcome: Outcome = "failed"
        if finish == "stop":
            outcome = "completed"
        elif finish == "length":
            outcome = "incomplete"
        elif stopped in (StopReason.LEFT, StopReason.CANCELLED):
            outcome = "cancelled"
        return Verdict(outcome=outcome, message=error or self.stop.sentence, reason=reason)

    def events(self, verdict: Verdict) -> Sequence[Event]:
        """The last events of the answer."""
        counts, read = self.answer.counts, self.prepared.prompt_tokens
        if self.prepared.generation is None:
            # The output is only a compaction.
            counts, read = self.prepared.spent, self.prepared.spent.input
        return self.answer.end(
            verdict.outcome,
            message=verdict.message,
            usage=usage(
                input_tokens=read,
                cached_tokens=counts.cached,
                cache_write_tokens=counts.cache_write,
                output_tokens=counts.output,
                reasoning_tokens=self.answer.reasoning_tokens,
            ),
            completed_at=int(self.stopwatch.now().timestamp()),
        )

    def store(
        self,
        response: objects.Response | EndedCompaction,
        *,
        is_too_large: bool = False,
        log_end: EventBatch | None = None,
    ) -> bool:
        """Store the final object; False without the lease. Retries for a while when the database is unavailable.

        Raises :class:`EntryTooLarge`, and the database's error when all retries fail.
        """
        ending = Ending(
            response=response,
            input_items=self.prepared.input_items,
            input_tokens=self.prepared.prompt_tokens,
            cached_tokens=self.answer.counts.cached,
            output_tokens=self.answer.counts.output,
            spent=self.prepared.spent,
            first_token_ms=self.stopwatch.first_token_ms,
            started=self.answer.has_started or self.prepared.spent.input > 0,
            is_too_large=is_too_large,
            log_end=log_end,
        )
        tries = 1
        while True:
            try:
                # The lease has also ended if the end was stored and only the confirmation was lost.
                return finish_response(lease=self.lease, ending=ending) or (tries > 1 and was_finished(self.lease))
            except DatabaseError as error:
                if tries == STORE_TRIES:
                    raise
                log.warning("generation.store_retry", response=self.lease.public_id, error=str(error))
            time.sleep(STORE_PAUSE_SECONDS)
            tries += 1

    def remember_thinking(self) -> None:
        """Remember the answer's thinking, for the requests that continue it."""
        prepared = self.prepared
        if self.answer.reasoning_tokens and prepared.history is not None:
            remember_thinking(
                worker=self.lease.worker,
                model=self.model,
                scope=prepared.scope,
                history=prepared.history,
                output=self.answer.snapshot()["output"],
            )

    def _is_invalid(self) -> bool:
        """Whether its JSON or its calls don't match the request. That is logged as an error of the server."""
        request, generation = self.prepared.request, self.prepared.generation
        if not self.answer.is_generated or request is None:
            return False
        error = "A call was not completed." if self.answer.is_cut_in_call else ""
        if generation is not None and generation.constraint is not None:
            error = error or check_answer(self.answer.snapshot()["output"], request)
        if error:
            log.error("generation.invalid_answer", response=self.lease.public_id, error=error)
        return bool(error)
