"""Follows a running foreground response, for streams and for requests that wait for the whole object."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import NoReturn

import orjson
import structlog

from responses_api import bus
from responses_api.bus.messages import (
    ReaderBehind,
    ResendEvents,
    ResponseEvents,
    ResponseRefused,
    ResponseResult,
    ResponseWaits,
)
from responses_api.database.threads import in_database_thread
from responses_api.errors import ApiError, AuthenticationFailed, ServerError
from responses_api.protocol import objects
from responses_api.protocol.objects.events import ResponseEvent
from responses_api.selectors.jobs import JobState
from responses_api.selectors.responses import ended_response
from responses_api.streaming import PING, EncodedEvent, SeenStream, encode_event
from responses_api.streaming.events import CompactionFailed, HistoryCompacted

from .web_process import web_process

log = structlog.get_logger(__name__)

KEY_ENDED = "The API key of this request was revoked or has expired while it was answered. Send it with another key."
LOST = "The worker that generated this response has stopped. Send the request again."
BEHIND = "This reader fell behind the events that the server keeps. Send the request again."


class Lost(ServerError):
    """The worker of the response was lost."""


@dataclass(slots=True)
class _Batch:
    events: list[EncodedEvent]
    last: bool
    error: ApiError | None = None
    """The error for a reader of the whole object, in place of the events."""


class Follower:
    """Reads one response's messages in order, each exactly once, and ends even if messages are lost.

    Make it with :func:`follow` before the job's row is written; close it when done.
    """

    is_of_job = False
    key_id: int | None = None

    def __init__(self, public_id: str, inbox: bus.Inbox) -> None:
        self.public_id = public_id
        self._inbox = inbox
        self._attempt = 0
        self._next = 0
        self._asked_for = -1
        """The first event of the last resend request, since each message after a gap shows the same gap."""
        self._worker = ""
        self._ended_before = False
        self._seen = SeenStream()
        self._opening: _Batch | None = None
        self.comment = PING
        """Why nothing comes, if the worker has said so."""
        self.ended = False
        """Whether the last event, or a refusal, has been read: there is nothing left to cancel."""

    def close(self) -> None:
        """Stop reading."""
        web_process.discard(self)
        web_process.leave(self.public_id)

    def observe(self, state: JobState) -> None:
        """Compare with the job's state in the database: ends the reader when the messages of an end were lost."""
        if state is JobState.ALIVE:
            self._ended_before = False
            if self._asked_for == self._next:
                self._ask_again()  # the answer has not come
        elif state is JobState.EXPIRED or self._ended_before:
            self._inbox.inject(bus.Signal.LOST)
        else:
            self._ended_before = True
            self._ask_again()

    def lock_out(self) -> None:
        """The key of the request is no longer valid: end the response."""
        self._inbox.inject(bus.Signal.LOCKED_OUT)

    def give_up(self) -> None:
        """The process is stopping: stop reading, and end the client's stream with an error."""
        self._inbox.inject(bus.Signal.LOST)

    def _ask_again(self) -> None:
        self._asked_for = self._next
        if self._worker:
            bus.publish(bus.process_group(self._worker), ResendEvents(response=self.public_id, first=self._next))

    async def opened(self) -> None:
        """Wait until a worker has accepted the request. Raises the :class:`ApiError` of a refusal."""
        batch = await self._receive(None)
        assert batch is not None
        self._opening = batch

    async def batches(self, *, keepalive: float) -> AsyncIterator[list[EncodedEvent]]:
        """The events, in batches as they come; an empty batch after ``keepalive`` silent seconds. Ends by itself."""
        while True:
            batch = self._opening if self._opening is not None else await self._receive(keepalive)
            self._opening = None
            if batch is None:
                yield []
                continue
            yield batch.events
            if batch.last:
                return

    async def result(self) -> objects.Response | objects.CompactedHistory:
        """Wait for the end; the final object. Raises :class:`ServerError` when the generation failed."""
        while True:
            try:
                batch = await self._receive(None)
            except Lost:
                # This reader gets a single message. If that was lost, the answer may still be stored.
                stored = await in_database_thread(ended_response, self.public_id)
                if stored is None:
                    self._note("failed", "lost")
                    raise
                self.ended = True
                return stored
            if batch is None or not batch.last:
                continue
            if batch.error is not None:
                raise batch.error
            _, text = batch.events[-1]
            event: ResponseEvent | HistoryCompacted | CompactionFailed = orjson.loads(text)
            if event["type"] == "response.failed":
                error = event["response"]["error"]
                assert error is not None
                raise ServerError(error["message"])
            return event["response"]

    async def _receive(self, timeout: float | None) -> _Batch | None:
        """The next batch in order; ``None`` after ``timeout`` seconds of silence."""
        while True:
            message = await self._inbox.receive(timeout)
            match message:
                case None:
                    return None
                case bus.Signal.LOST:
                    return self._lost(LOST, "lost")
                case bus.Signal.LOCKED_OUT:
                    return self._locked_out()
                case ResponseEvents() | ResponseResult() | ResponseRefused() | ResponseWaits() | ReaderBehind():
                    if message.attempt < self._attempt:
                        continue
                    self._attempt = message.attempt
                    if (batch := self._taken(message)) is not None:
                        return batch

    def _taken(
        self, message: ResponseEvents | ResponseResult | ResponseRefused | ResponseWaits | ReaderBehind
    ) -> _Batch | None:
        """The batch of a message of the current attempt; ``None`` when nothing is new, or an event is missing."""
        if isinstance(message, ReaderBehind):
            return self._lost(BEHIND, "behind")
        if isinstance(message, ResponseRefused):
            self.ended = True
            self._raise_refusal(message.error.as_error())
        if isinstance(message, ResponseWaits):
            self.comment = f"waiting: {message.what_for}"
            return _Batch([], last=False)
        self._worker, self.comment = message.worker, PING
        if isinstance(message, ResponseEvents):
            batch = self._in_order(message)
        else:
            error = message.error.as_error() if message.error is not None else None
            batch = _Batch([message.event], last=True, error=error)
        if batch is not None and batch.last:
            self.ended = True
            if any(kind == "response.failed" for kind, _ in batch.events[-1:]):
                self._note("failed", message.reason)
        return batch

    def _locked_out(self) -> _Batch:
        if not self._seen.has_begun:
            raise AuthenticationFailed(KEY_ENDED)
        return _Batch(self.failure(KEY_ENDED), last=True)

    def _lost(self, sentence: str, reason: str) -> _Batch:
        if not self._seen.has_begun:
            raise Lost(sentence)
        self._note("failed", reason)
        return _Batch(self.failure(sentence), last=True)

    def _raise_refusal(self, error: ApiError) -> NoReturn:
        if error.status >= 500:
            self._note("refused", error.code or "")
        raise error

    def _note(self, end: str, reason: str) -> None:
        """Log an error of the server, once, where the request's id is known. No content is logged."""
        log.error("response.error", response=self.public_id, end=end, reason=reason, worker=self._worker)

    def _in_order(self, message: ResponseEvents) -> _Batch | None:
        """The new events of a message; ``None`` when it has none, or when an event before it is missing."""
        if message.first > self._next:
            if self._asked_for != self._next:
                self._ask_again()
            return None
        events = list(message.events[self._next - message.first :])
        if not events:
            return None
        self._next += len(events)
        self._seen.see(events)
        return _Batch(events, message.last)

    def failure(self, message: str) -> list[EncodedEvent]:
        """The events that end an open stream after an error."""
        return [encode_event(event) for event in self._seen.failure(message)]


async def follow(public_id: str) -> Follower:
    """Listen to a response that does not exist yet. Raises :class:`Overloaded` without a broker."""
    await web_process.start()
    return Follower(public_id, web_process.listen(public_id))
