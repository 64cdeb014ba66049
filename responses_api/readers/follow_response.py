"""The one reader of a running response, shared by JSON waiters and streams."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import orjson
import structlog

from responses_api import bus
from responses_api.bus.listen import listen
from responses_api.bus.messages import ReaderBehind, ResendEvents, ResponseEvents, ResponseRefused, ResponseResult
from responses_api.database.threads import in_database_thread
from responses_api.errors import ApiError, AuthenticationFailed, ServerError
from responses_api.selectors.jobs import Standing
from responses_api.selectors.responses import ended_response
from responses_api.streaming import EncodedEvent, SeenStream, encode_event

from .web_process import web_process

log = structlog.get_logger(__name__)

KEY_ENDED = "The API key of this request was revoked or has expired while it was answered. Send it with another key."
LOST = "The worker that generated this response has stopped. Send the request again."
BEHIND = "This reader fell behind the events that the server keeps. Send the request again."


class Lost(ServerError):
    """Nothing more is heard of the response."""


@dataclass(slots=True)
class _Batch:
    events: list[EncodedEvent]
    last: bool
    error: ApiError | None = None
    """What a reader of the whole object is told in the place of the events."""


class Follower:
    """Reads one response's messages in order, without a gap or a double, and never waits for ever.

    Make it with :func:`follow` before the job's row is written; close it when done.
    """

    is_of_job = False
    key_id: int | None = None

    def __init__(self, public_id: str, subscription: bus.Subscription) -> None:
        self.public_id = public_id
        self._subscription = subscription
        self._attempt = 0
        self._next = 0
        self._asked_for = -1
        """The event that was asked for again last: each message after a gap shows the same gap."""
        self._worker = ""
        self._ended_before = False
        self._seen = SeenStream()
        self._held: _Batch | None = None
        self.ended = False
        """Whether the last event, or a refusal, has been read: there is nothing left to cancel."""

    async def close(self) -> None:
        """Stop reading."""
        web_process.discard(self)
        await self._subscription.close()

    def observe(self, standing: Standing) -> None:
        """Take note of how the job stands by the database: the way out when messages don't come any more."""
        if standing is Standing.ALIVE:
            self._ended_before = False
            if self._asked_for == self._next:
                self._ask_again()  # the answer has not come
        elif standing is Standing.EXPIRED or self._ended_before:
            self._subscription.inject(bus.Signal.LOST)
        else:
            self._ended_before = True
            self._ask_again()

    def lock_out(self) -> None:
        """The key of the request has ended, and so does its answer."""
        self._subscription.inject(bus.Signal.LOCKED_OUT)

    def give_up(self) -> None:
        """The process ends: read no further, and tell the client so."""
        self._subscription.inject(bus.Signal.LOST)

    def _ask_again(self) -> None:
        self._asked_for = self._next
        if self._worker:
            bus.publish(bus.process_group(self._worker), ResendEvents(response=self.public_id, first=self._next))

    async def opened(self) -> None:
        """Wait until a worker has accepted the request. Raises what the worker refused it with."""
        batch = await self._receive(None)
        assert batch is not None
        self._held = batch

    async def batches(self, *, keepalive: float) -> AsyncIterator[list[EncodedEvent]]:
        """The events, in batches as they come; an empty batch after ``keepalive`` silent seconds. Ends by itself."""
        while True:
            batch = self._held if self._held is not None else await self._receive(keepalive)
            self._held = None
            if batch is None:
                yield []
                continue
            yield batch.events
            if batch.last:
                return

    async def result(self) -> Mapping[str, Any]:
        """Wait for the end; the final response object. Raises :class:`ServerError` when the generation failed."""
        while True:
            try:
                batch = await self._receive(None)
            except Lost:
                # It waits for one message alone. When that went astray, the answer may be stored all the same.
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
            kind, event = batch.events[-1]
            response: dict[str, Any] = orjson.loads(event)["response"]
            if kind == "response.failed":
                raise ServerError(response["error"]["message"])
            return response

    async def _receive(self, timeout: float | None) -> _Batch | None:
        """The next batch in order; ``None`` after ``timeout`` seconds of silence."""
        while True:
            message = await self._subscription.receive(timeout)
            match message:
                case None:
                    return None
                case bus.Signal.LOST:
                    return self._lost(LOST, "lost")
                case bus.Signal.LOCKED_OUT:
                    return self._locked_out()
                case ResponseEvents() | ResponseResult() | ResponseRefused() | ReaderBehind():
                    if message.attempt < self._attempt:
                        continue
                    self._attempt = message.attempt
                    if (batch := self._taken(message)) is not None:
                        return batch

    def _taken(self, message: ResponseEvents | ResponseResult | ResponseRefused | ReaderBehind) -> _Batch | None:
        """What a message of the current attempt brings; ``None`` when nothing is new, or something is missing."""
        if isinstance(message, ReaderBehind):
            return self._lost(BEHIND, "behind")
        if isinstance(message, ResponseRefused):
            self.ended = True
            self._raise_refusal(message.error.as_error())
        self._worker = message.worker
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
        """Log a fault of ours, once, where the request's id is known. No content: neither of the request nor of the
        answer.
        """
        log.error("response.fault", response=self.public_id, end=end, reason=reason, worker=self._worker)

    def _in_order(self, message: ResponseEvents) -> _Batch | None:
        """What of a message is new; ``None`` when nothing is, or when something before it is missing."""
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
        """The end of an open stream that can't go on."""
        return [encode_event(event) for event in self._seen.failure(message)]


async def follow(public_id: str) -> Follower:
    """Start listening for a response that does not exist yet. Raises :class:`Overloaded` when nothing can be heard."""
    return Follower(public_id, await listen(bus.response_group(public_id)))
