"""A row that a worker owns, from its claim to its end."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from inference.types import Chunk, Finish, GenerationRequest
from responses_api.caller import cache_scope
from responses_api.errors import ApiError, ServerError
from responses_api.interruptions import StopReason
from responses_api.models import Response
from responses_api.services.jobs.leases import Lease
from responses_api.services.prompts.blobs import seal_reasoning
from responses_api.streaming import Answer, CompactionBuilder, Event, ResponseBuilder

from .live_output import LiveOutput
from .logged_output import Log, LoggedOutput
from .output import Output
from .prepare_generation import Compacting, Continuation, Prepared
from .published_events import PublishedEvents
from .stop import Stop


class Run:
    """An attempt to answer a row: its sequences in the engine, its answer, and the output that its events go to.

    Methods are called by one thread at a time, in the order ``start``, ``begin``, ``feed``…, ``close``. Where a history
    is compacted first, ``begin`` and ``feed``… come once for each summary, with ``compacted`` after each; ``refuse``
    ends it at any point before it has been accepted. ``stop`` may be called by any thread.
    """

    def __init__(self, *, row: Response, lease: Lease, output: Output, stop: Stop) -> None:
        self.lease = lease
        self.model = row.model
        self.is_job = row.background
        """Whether it is a background job."""
        self.request_id = f"{row.public_id}.{lease.attempt}"
        self.sequence_id = ""
        """The engine's id of its current sequence, the answer or a summary before it; empty before the first one."""
        self._owner = cache_scope(project_id=row.project_id, key_id=row.key_id)
        self._output = output
        self._stop = stop
        self._compacting: Compacting | None = None
        self._answer: Answer | None = None
        self._generation: GenerationRequest | None = None
        self._sequences = 0

    @property
    def published(self) -> PublishedEvents | None:
        """The events that its reader may ask for again; ``None`` for a job, whose readers read the log."""
        return self._output.published

    # Stopping

    def stop(self, reason: StopReason) -> None:
        """End it early; the first reason counts."""
        self._stop.give(reason)

    @property
    def stop_reason(self) -> StopReason | None:
        """Why it is to end early, if it is."""
        return self._stop.reason

    def is_to_stop(self) -> bool:
        """Whether it is to end early."""
        return self._stop.reason is not None

    def interruption(self) -> ServerError:
        """The error for a client whose request ended before it was accepted."""
        return self._stop.error()

    # The beginning

    def start(self, digest: str) -> Continuation | None:
        """It has begun on a model with this digest. Returns what it resumes from, if there is anything."""
        return self._output.start(digest)

    @property
    def is_compacting(self) -> bool:
        """Whether a summary is being generated: the request is not accepted yet."""
        return self._compacting is not None

    def begin(self, prepared: Prepared | Compacting) -> GenerationRequest | None:
        """Open the stream, unless a summary comes first. Returns what to generate, ``None`` for nothing."""
        if isinstance(prepared, Compacting):
            self._compacting = prepared
            step = prepared.next()
            if isinstance(step, GenerationRequest):
                self.sequence_id = step.id
                return step
            self._compacting, prepared = None, step
        self._generation = prepared.generation
        self._answer, events = new_answer(prepared, queued=self.is_job, owner=self._owner)
        self._output.open(self._answer, prepared, events)
        return self.resume()

    def compacted(self) -> GenerationRequest | None:
        """A summary has ended; returns what to generate next, see :meth:`begin`."""
        assert self._compacting is not None
        self._compacting.take()
        return self.begin(self._compacting)

    def resume(self) -> GenerationRequest | None:
        """A sequence for the rest of the answer: all of it, or what is left after a preemption."""
        assert self._answer is not None
        self._sequences += 1
        self.sequence_id = f"{self.request_id}.{self._sequences}"
        if self._generation is None:
            return None
        return replace(self._generation, id=self.sequence_id, generated=tuple(self._answer.tokens))

    def wait_for_model(self) -> None:
        """Its model is not loaded yet."""
        self._output.wait(f"the model {self.model} is being loaded")

    # The rest

    def feed(self, chunks: Sequence[Chunk]) -> Finish | None:
        """Take the engine's new chunks; returns how the sequence ended, if it did."""
        if self._compacting is not None:
            self._compacting.feed(chunks)
        else:
            self._output.feed(chunks)
        return chunks[-1].finish

    def close(self, finish: Finish, *, error: str = "") -> None:
        """Store the end, then publish it; or let another worker resume it."""
        self._output.close(finish, error)

    def refuse(self, error: ApiError) -> None:
        """The request can't be run: tell its reader, and remove it."""
        self._output.refuse(error)

    def let_go(self) -> None:
        """It has ended in some way: release the history that was being compacted."""
        self._compacting = None


def new_run(*, row: Response, lease: Lease, log: Log) -> Run:
    """The run of a row that was just claimed. ``log`` is written for background jobs only."""
    stop = Stop()
    output: Output
    if row.background:
        output = LoggedOutput(row=row, lease=lease, log=log, stop=stop)
        if row.cancel_requested_at is not None:
            stop.give(StopReason.CANCELLED)
    else:
        output = LiveOutput(row=row, lease=lease, stop=stop)
    return Run(row=row, lease=lease, output=output, stop=stop)


def new_answer(prepared: Prepared, *, queued: bool, owner: str) -> tuple[Answer, Sequence[Event]]:
    """The answer to a prepared request, and the events that open its stream."""
    body = prepared.body
    if body["object"] == "response.compaction":
        answer = Answer(CompactionBuilder(body))
        return answer, answer.open()
    request = prepared.request
    seal = partial(seal_reasoning, owner=owner) if request is not None and request.wants_encrypted_reasoning else None
    builder = ResponseBuilder(body, queued=queued, answers=prepared.generation is not None, seal=seal)
    answer = Answer(builder, parser=prepared.parser, logprobs=request is not None and request.wants_logprobs)
    events = answer.open()
    done = prepared.compacted
    if done is None:
        return answer, events
    tokens = (done.tokens_before, done.tokens_after) if done.announced else None
    return answer, [*events, *answer.add_compaction(done.encrypted_content, tokens=tokens)]
