"""Reads a background job's stream: first the events in its log, then new ones. Leaving it cancels nothing."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

import orjson
import structlog
from django.conf import settings
from django.db import Error as DatabaseError

from responses_api import bus
from responses_api.bus.listen import listen
from responses_api.bus.messages import JobEvents
from responses_api.caller import Caller
from responses_api.database.threads import in_admission_thread, in_database_thread, in_reading_thread
from responses_api.errors import (
    ApiError,
    AuthenticationFailed,
    CursorExpired,
    InvalidValue,
    RateLimited,
    StreamNotAvailable,
)
from responses_api.models import Response
from responses_api.protocol import objects
from responses_api.protocol.objects.events import error_event
from responses_api.selectors.jobs import JobState
from responses_api.selectors.responses import ended_response, get_response
from responses_api.services.admission.create_response import new_response_id
from responses_api.services.jobs.event_log import is_streamable, read_page, readable_range
from responses_api.services.store.open_response import open_response
from responses_api.streaming import PING, EncodedEvent, encode_event, failure_events, terminal_events

from .answer_create import create_job
from .follow_response import KEY_ENDED
from .reader import ReadingStopped
from .request_body import RequestBody
from .web_process import web_process

log = structlog.get_logger(__name__)

RETRY_SECONDS = 0.5
BEHIND = "This reader fell behind the events that the server keeps. Retrieve the response, or stream it again."
GONE = "The response was deleted while it was streamed."


class JobReader:
    """Reads one job's events in order, each exactly once, from any point on.

    The log is authoritative, and messages are only faster. Missing events are read from the log, which the reader also
    checks with every heartbeat of the process.
    """

    is_of_job = True
    comment = PING

    def __init__(self, *, public_id: str, subscription: bus.Subscription, key_id: int | None = None) -> None:
        self.public_id = public_id
        self.key_id = key_id
        self._row = 0
        self._body = ""
        self._next = 0
        self._keepalive = 0.0
        self._quiet_until = 0.0
        self._subscription = subscription
        self._stopped: ReadingStopped | None = None

    def start(self, row: Response, first: int) -> None:
        """Set the row and the first event to read; from now on the process watches the job."""
        self._row, self._next, self._body = row.pk, first, row.body
        web_process.add(self)

    async def close(self) -> None:
        """Stop reading."""
        web_process.discard(self)
        await self._subscription.close()

    def observe(self, state: JobState) -> None:
        """Check the log: a message may have been lost, or the job may have ended without one."""
        self._subscription.inject(bus.Signal.LOOK)

    def give_up(self) -> None:
        """The process is stopping, but not the job: end the stream, for the client to resume it elsewhere."""
        self._stop(ReadingStopped())

    def lock_out(self) -> None:
        """The key of the stream is no longer valid: end the stream, but not the job, which belongs to the project."""
        self._stop(KeyEnded())

    def _stop(self, reason: ReadingStopped) -> None:
        self._stopped = reason
        self._subscription.inject(bus.Signal.LOOK)

    async def opened(self) -> None:
        """Return at once: a stream of a job that can't be opened was refused before."""

    def failure(self, message: str) -> list[EncodedEvent]:
        """No events: the job continues, and its stream can be resumed."""
        return []

    async def batches(self, *, keepalive: float) -> AsyncIterator[list[EncodedEvent]]:
        """The events in batches as they come; an empty batch after ``keepalive`` silent seconds. Ends by itself.

        Raises :class:`ReadingStopped` when the process ends before the job has.
        """
        try:
            async with aclosing(self._batches(keepalive)) as batches:
                async for events in batches:
                    yield events
        except KeyEnded:
            yield [self._error(AuthenticationFailed, KEY_ENDED)]

    async def _batches(self, keepalive: float) -> AsyncGenerator[list[EncodedEvent], None]:
        self._keepalive = keepalive
        self._restart_keepalive()
        while True:
            async for events, is_end in self._logged():
                yield events
                self._restart_keepalive()
                if is_end:
                    return
            if self._stopped is not None:
                raise self._stopped
            while (received := await self._received()) is not None:
                events, is_end = received
                yield events
                self._restart_keepalive()
                if is_end:
                    return

    def _restart_keepalive(self) -> None:
        """Events were sent: the next keepalive is due after ``keepalive`` seconds."""
        self._quiet_until = asyncio.get_running_loop().time() + self._keepalive

    async def _logged(self) -> AsyncIterator[tuple[list[EncodedEvent], bool]]:
        """The events in the log from the next one on, page by page, each with whether it is the last."""
        while self._stopped is None:
            try:
                page = await in_reading_thread(read_page, self._row, self._next)
            except DatabaseError as error:
                log.warning("reader.database_unavailable", response=self.public_id, error=str(error))
                yield [], False
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if page.is_behind:
                yield [self._error(CursorExpired, BEHIND)], True
                return
            if page.is_gone:
                stored = await in_reading_thread(ended_response, self.public_id)
                yield self._end_without_log(stored), True
                return
            self._next += len(page.events)
            if page.events or page.is_end:
                yield page.events, page.is_end
            if not page.events:
                return

    def _error(self, kind: type[ApiError], message: str) -> EncodedEvent:
        """The last event of a stream that ends before the job has."""
        return encode_event(error_event(kind.code, message, sequence_number=self._next))

    def _end_without_log(self, stored: objects.Response | None) -> list[EncodedEvent]:
        """The last events when the log was removed while it was read: the job's end, or that it was deleted."""
        if stored is None:
            body: objects.Response = orjson.loads(self._body)
            created: objects.Response = {**body, "output": []}
            events = failure_events(created, sequence_number=self._next, message=GONE)
        else:
            events = terminal_events(stored, sequence_number=self._next)
        return [encode_event(event) for event in events]

    async def _received(self) -> tuple[list[EncodedEvent], bool] | None:
        """The events of the next message, none when a keepalive is due; ``None`` when the log has to be read."""
        while True:
            seconds = self._quiet_until - asyncio.get_running_loop().time()
            message = await self._subscription.receive(seconds) if seconds > 0 else None
            if self._stopped is not None:
                raise self._stopped
            if message is None:
                return [], False
            if not isinstance(message, JobEvents) or message.first > self._next:
                return None
            events = list(message.events[self._next - message.first :])
            if events or message.last:
                self._next += len(events)
                return events, message.last


class KeyEnded(ReadingStopped):
    """The key of the stream is no longer valid; the job continues."""


_readers: Counter[str] = Counter()
"""The number of readers of this process, by owner. Used on its event loop only."""


@asynccontextmanager
async def place_to_read(caller: Caller) -> AsyncIterator[None]:
    """Take one of the places for readers while the block runs. Raises :class:`RateLimited` when there is none."""
    owner = caller.name
    if _readers.total() >= settings.RESPONSES_STREAM_READERS:
        raise RateLimited(
            f"{settings.RESPONSES_STREAM_READERS} readers stream background responses from this process, and no more "
            "may (RESPONSES_STREAM_READERS). Try again later, or retrieve the response without `stream`.",
        )
    if _readers[owner] >= settings.RESPONSES_STREAM_READERS_PER_KEY:
        raise RateLimited(
            f"This key streams {settings.RESPONSES_STREAM_READERS_PER_KEY} background responses already, and may no "
            "more (RESPONSES_STREAM_READERS_PER_KEY). End a stream, or retrieve the response without `stream`.",
        )
    _readers[owner] += 1
    try:
        yield
    finally:
        _readers[owner] -= 1
        if not _readers[owner]:
            del _readers[owner]


@asynccontextmanager
async def reading(public_id: str, *, key_id: int | None = None) -> AsyncIterator[JobReader]:
    """A reader that is subscribed to a job, which may not exist yet. Raises :class:`Overloaded` without a broker."""
    web_process.refuse_when_stopping()
    await web_process.start()
    subscription = await listen(bus.response_group(public_id))
    reader = JobReader(public_id=public_id, subscription=subscription, key_id=key_id)
    try:
        yield reader
    finally:
        await reader.close()


@asynccontextmanager
async def new_job_reader(*, caller: Caller, body: RequestBody) -> AsyncIterator[JobReader]:
    """Admit a background job and read it from its first event on. Raises an :class:`ApiError`.

    The reader takes its place and subscribes first, so that nothing is refused once the job is admitted.
    """
    public_id = new_response_id()
    async with place_to_read(caller), reading(public_id, key_id=caller.key_id) as reader:
        row = await in_admission_thread(caller.name, create_job, caller=caller, body=body, public_id=public_id)
        reader.start(row, 0)
        yield reader


@asynccontextmanager
async def stored_job_reader(
    *, caller: Caller, response_id: str, starting_after: int | None
) -> AsyncIterator[JobReader]:
    """Read a background job, from the event after ``starting_after`` on. Raises an :class:`ApiError`."""
    request = {"caller": caller, "response_id": response_id, "starting_after": starting_after}
    # Refused before subscribing, since an invalid id is not a valid group.
    await in_database_thread(refuse_stream, **request)
    async with place_to_read(caller), reading(response_id, key_id=caller.key_id) as reader:
        row, first = await in_admission_thread(caller.name, job_to_stream, **request)
        reader.start(row, first)
        yield reader


def job_to_stream(*, caller: Caller, response_id: str, starting_after: int | None) -> tuple[Response, int]:
    """The job whose stream a caller requests, and the first event to send. Raises an :class:`ApiError`."""
    return place_in_log(open_response(caller=caller, response_id=response_id), starting_after)


def refuse_stream(*, caller: Caller, response_id: str, starting_after: int | None) -> None:
    """Raise what :func:`job_to_stream` would, without recording a use of the response."""
    place_in_log(get_response(caller=caller, response_id=response_id), starting_after)


def place_in_log(row: Response, starting_after: int | None) -> tuple[Response, int]:
    """The job, and the number of the first event to send. Raises an :class:`ApiError` if it can't be read."""
    response_id = row.public_id
    first = 0 if starting_after is None else starting_after + 1
    readable = readable_range(row.pk) if is_streamable(row) else None
    if readable is None:
        reason = "is no longer kept" if row.background else "was never kept, for it was not made in the background"
        raise StreamNotAvailable(
            f"The event record of response '{response_id}' {reason}. Retrieve the response without `stream`."
        )
    oldest, following = readable
    if first > following:
        raise InvalidValue(
            f"`starting_after` is {starting_after}, and the last event so far is {following - 1}. Send the "
            "`sequence_number` of the last event that you received.",
            param="starting_after",
        )
    if first < oldest:
        raise CursorExpired(
            f"The events before {oldest} are no longer kept. Send `starting_after={oldest - 1}` or a later one, or "
            "retrieve the response without `stream`.",
            param="starting_after",
        )
    return row, first
