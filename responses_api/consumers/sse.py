"""The streams: of a request as it is answered, and of a background job from any point on."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from channels.generic.http import AsyncHttpConsumer
from django.conf import settings

from responses_api.api.admission import admission, caller_of, job_admission, wants_job
from responses_api.api.exceptions import as_api_error
from responses_api.api.request_scope import PAYLOAD, query_pairs
from responses_api.caller import Caller
from responses_api.database.threads import in_admission_thread, in_database_thread
from responses_api.models import Response
from responses_api.protocol import parse_retrieve_query
from responses_api.readers.answer_create import running_response
from responses_api.readers.follow_job import ReadingStopped, job_to_stream, place_to_read, reading, refuse_stream
from responses_api.readers.follow_response import Follower
from responses_api.services.admission.create_response import new_response_id
from responses_api.streaming import DONE, PING, EncodedEvent, frame

from .bodies import client_left
from .router import send_error

HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store, no-transform"),
    # Proxies such as nginx would hold events back.
    (b"x-accel-buffering", b"no"),
]


class EventStreamConsumer(AsyncHttpConsumer):
    """A stream of events. The client's leaving and the server's shutdown both end ``stream``."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scope = scope
        self.base_send = send
        tasks = [asyncio.create_task(self.stream()), asyncio.create_task(client_left(receive))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def stream(self) -> None:
        """Send the headers, the events, and what ends them."""
        raise NotImplementedError

    async def send_events(self, events: list[EncodedEvent]) -> None:
        """Send a batch; an empty one keeps the connection alive."""
        await self.send_body(b"".join(frame(kind, text) for kind, text in events) or PING, more_body=True)

    async def send_job(self, caller: Caller, public_id: str, find: Callable[[], tuple[Response, int]]) -> None:
        """The events of the background job that ``find`` gives, from the event on that it gives.

        The reader has its place and listens before: nothing that ``find`` admits is refused afterwards.
        """
        opened = False
        try:
            async with place_to_read(caller), reading(public_id, key_id=caller.key_id) as reader:
                row, first = await in_admission_thread(caller.name, find)
                reader.start(row, first)
                await self.send_headers(status=200, headers=HEADERS)
                opened = True
                async for events in reader.batches(keepalive=settings.RESPONSES_KEEPALIVE_SECONDS):
                    await self.send_events(events)
                await self.send_body(DONE)
        except ReadingStopped:
            # The job goes on, and its stream can be taken up again: no event says that it has ended.
            await self.send_body(b"")
        except Exception as error:
            known = as_api_error(error)
            if opened:
                await self.send_body(b"")
            else:
                await send_error(self.base_send, known)


class ResponseStreamConsumer(EventStreamConsumer):
    """``POST /responses``: a streamed response, or a background job with a reader from the start."""

    async def stream(self) -> None:
        """Admit, wait for the worker's word, then pass events on until the last."""
        opened: Follower | None = None
        try:
            if wants_job(self.scope.get(PAYLOAD)):
                await self.stream_job()
                return
            async with running_response(admission(self.scope), caller=caller_of(self.scope)) as follower:
                await follower.opened()
                await self.send_headers(status=200, headers=HEADERS)
                opened = follower
                async for events in follower.batches(keepalive=settings.RESPONSES_KEEPALIVE_SECONDS):
                    await self.send_events(events)
                await self.send_body(DONE)
        except Exception as error:
            known = as_api_error(error)
            if opened is None:
                await send_error(self.base_send, known)
            else:
                await self.send_events(opened.failure(known.message))
                await self.send_body(DONE)

    async def stream_job(self) -> None:
        """Admit a job, then read its events: leaving cancels nothing."""
        public_id = new_response_id()
        admit = job_admission(self.scope, public_id=public_id)
        await self.send_job(caller_of(self.scope), public_id, lambda: (admit(), 0))


class RetrievedStreamConsumer(EventStreamConsumer):
    """``GET /responses/{id}?stream=true``: a background job's events again, and then as they come."""

    async def stream(self) -> None:
        """Find the job, then pass events on."""
        try:
            query = parse_retrieve_query(query_pairs(self.scope))
        except Exception as error:
            await send_error(self.base_send, as_api_error(error))
            return
        caller = caller_of(self.scope)
        response_id = self.scope["path"].rpartition("/")[2]
        asked = {"caller": caller, "response_id": response_id, "starting_after": query.starting_after}
        try:
            # Before anybody listens for it: an id that is none can't be listened for.
            await in_database_thread(refuse_stream, **asked)
        except Exception as error:
            await send_error(self.base_send, as_api_error(error))
            return
        await self.send_job(caller, response_id, partial(job_to_stream, **asked))
