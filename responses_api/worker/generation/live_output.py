"""The output of a foreground response: published at once, and stored at the end."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from django.db import Error as DatabaseError

from inference.types import Chunk, Finish
from responses_api.errors import ApiError, EntryTooLarge
from responses_api.interruptions import StopReason
from responses_api.models import Response
from responses_api.services.jobs.leases import Lease
from responses_api.services.jobs.remove_jobs import remove_jobs
from responses_api.streaming import Answer, EncodedEvent, Event, encode_event

from .ending import AnswerEnd, Verdict
from .prepare_generation import Continuation, Prepared
from .published_events import PublishedEvents
from .stop import Stop
from .stopwatch import Stopwatch

log = structlog.get_logger(__name__)

EVENT_BYTES = 8 << 20
"""Largest event of a foreground response. Redis disconnects a process for which more than 32 MiB wait, and with it all
of its readers."""
NOT_STORED = "The server could not store this response. Send the request again."


@dataclass(frozen=True, slots=True)
class _Last:
    """The last publication."""

    events: list[EncodedEvent]
    reason: str = ""
    """Why the response failed, for the log."""
    refusal: ApiError | None = None
    """The error for a reader of the whole object, if the response failed."""


class LiveOutput:
    """Readers get every event through the bus; a reader of the whole object gets the last one only."""

    def __init__(self, *, row: Response, lease: Lease, stop: Stop) -> None:
        self._lease = lease
        self._stop = stop
        self._model = row.model
        self._stopwatch = Stopwatch(row)
        self._is_streamed = row.stream
        self._answer: Answer | None = None
        self._prepared: Prepared | None = None
        self.published = PublishedEvents(lease, reader=row.reader, whole=not row.stream)

    def start(self, digest: str) -> Continuation | None:
        """A foreground response is never resumed."""
        return None

    def open(self, answer: Answer, prepared: Prepared, events: Sequence[Event]) -> None:
        """Publish the first events."""
        if self._is_streamed and events:
            first = self._encoded(events)
            refuse_oversized(first)
            self.published.add(first)
        self._answer, self._prepared = answer, prepared

    def wait(self, what_for: str) -> None:
        """Tell the reader of the stream, if it is open."""
        if self._is_streamed and self._answer is not None:
            self.published.wait(what_for)

    def feed(self, chunks: Sequence[Chunk]) -> None:
        """Publish the events of new chunks."""
        assert self._answer is not None
        events = self._answer.feed(chunks)
        self._stopwatch.note(self._answer)
        self._publish(events)

    def close(self, finish: Finish, error: str) -> None:
        """Publish the text that was held back, store the end, then publish it."""
        answer, prepared = self._answer, self._prepared
        assert answer is not None
        assert prepared is not None
        self._publish(answer.flush())
        end = AnswerEnd(
            lease=self._lease,
            stop=self._stop,
            stopwatch=self._stopwatch,
            model=self._model,
            prepared=prepared,
            answer=answer,
        )
        try:
            last = self._store(end, end.judge(finish, error))
        except DatabaseError:
            log.exception("generation.not_stored", response=self._lease.public_id)
            last = _Last(self._encoded(answer.fail_instead(NOT_STORED, usage=None)), "not_stored")
        if last is None or self._stop.reason is StopReason.LEFT:
            return
        end.remember_thinking()
        self._publish_end(last)

    def refuse(self, error: ApiError) -> None:
        """Remove the row, and tell its reader why."""
        try:
            remove_jobs(self._lease.rows())
        finally:
            # A row that can't be removed now is found when its lease has expired.
            self.published.refuse(error)

    def _store(self, end: AnswerEnd, verdict: Verdict) -> "_Last | None":
        """Store the end, and return its publication; ``None`` without the lease. An answer that is too large to be
        stored fails.
        """
        answer = end.answer
        events = self._encoded(end.events(verdict))
        response = answer.snapshot()
        try:
            refuse_oversized(events)
            if not end.store(response):
                return None
        except EntryTooLarge as error:
            log.warning("generation.too_large", response=self._lease.public_id)
            events = self._encoded(answer.fail_instead(error.message, usage=response.get("usage")))
            if not end.store(answer.snapshot(), is_too_large=True):
                return None
            return _Last(events, "too_large", EntryTooLarge(error.message, param=error.param))
        refuses = self._stop.reason in (StopReason.TIMEOUT, StopReason.NOT_LOADED)
        return _Last(events, verdict.reason, self._stop.error() if refuses else None)

    def _encoded(self, events: Sequence[Event]) -> list[EncodedEvent]:
        """The events that will be published, encoded: for a reader of the whole object, only the last one."""
        return [encode_event(event) for event in (events if self._is_streamed else events[-1:])]

    def _publish(self, events: Sequence[Event]) -> None:
        if events and self._is_streamed:  # a reader of the whole object would be woken in vain
            self.published.add(self._encoded(events))

    def _publish_end(self, last: "_Last") -> None:
        kind, _ = last.events[-1]
        refusal = last.refusal if kind == "response.failed" else None
        self.published.end(last.events, error=refusal, reason=last.reason)


def refuse_oversized(events: Sequence[EncodedEvent]) -> None:
    """Raise :class:`EntryTooLarge` for an event that is too large to be published."""
    size = max((len(text) for _, text in events), default=0)
    if size > EVENT_BYTES:
        raise EntryTooLarge(
            f"The response, with the items that are kept of its history, has {size} bytes, and at most {EVENT_BYTES} "
            "are sent at once. Shorten the input.",
            param="input",
        )
