"""Stream consumers: for a response while it is generated, and for a background job from any event on."""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

from channels.generic.http import AsyncHttpConsumer
from django.conf import settings

from responses_api.api.exceptions import as_api_error
from responses_api.api.request_scope import BODY, CALLER, query_pairs
from responses_api.protocol import parse_retrieve_query
from responses_api.readers.answer_chat import running_chat
from responses_api.readers.answer_create import running_response
from responses_api.readers.follow_job import new_job_reader, stored_job_reader
from responses_api.readers.reader import Reader, ReadingStopped
from responses_api.services.admission.create_response import create_response
from responses_api.streaming import DONE, PING, EncodedEvent, comment, frame

from .bodies import client_left
from .router import send_error

HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store, no-transform"),
    # Otherwise proxies such as nginx buffer the events.
    (b"x-accel-buffering", b"no"),
]


class EventStreamConsumer(AsyncHttpConsumer):
    """A stream of events. It ends when the client leaves or the server shuts down."""

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

    def reading(self) -> AbstractAsyncContextManager[Reader]:
        """The reader of the requested stream. Calling or entering it raises the error of a refused request."""
        raise NotImplementedError

    async def stream(self) -> None:
        """Wait until the stream can be opened, then send events up to the last."""
        opened: Reader | None = None
        try:
            async with self.reading() as reader:
                await reader.opened()
                await self.send_headers(status=200, headers=HEADERS)
                opened = reader
                async for events in reader.batches(keepalive=settings.RESPONSES_KEEPALIVE_SECONDS):
                    await self.send_events(events, silence=reader.comment)
                await self.send_body(DONE)
        except ReadingStopped:
            # The response has not ended, so no last event is sent.
            await self.send_body(b"")
        except Exception as error:
            known = as_api_error(error)
            if opened is None:
                await send_error(self.base_send, known)
            elif events := opened.failure(known.message):
                await self.send_events(events)
                await self.send_body(DONE)
            else:
                await self.send_body(b"")

    async def send_events(self, events: list[EncodedEvent], *, silence: str = PING) -> None:
        """Send a batch; for an empty one the comment ``silence``, which keeps the connection alive."""
        await self.send_body(b"".join(frame(kind, text) for kind, text in events) or comment(silence), more_body=True)


class ResponseStreamConsumer(EventStreamConsumer):
    """``POST /responses``: a streamed response, or a background job with a reader from the start."""

    def reading(self) -> AbstractAsyncContextManager[Reader]:
        caller, body = self.scope[CALLER], self.scope[BODY]
        if body.asks_for("background"):
            return new_job_reader(caller=caller, body=body)
        return running_response(create_response, caller=caller, body=body)


class ChatStreamConsumer(EventStreamConsumer):
    """``POST /chat/completions``: a streamed chat completion."""

    def reading(self) -> AbstractAsyncContextManager[Reader]:
        return running_chat(caller=self.scope[CALLER], body=self.scope[BODY])


class RetrievedStreamConsumer(EventStreamConsumer):
    """``GET /responses/{id}?stream=true``: a background job's stored events, then new ones."""

    def reading(self) -> AbstractAsyncContextManager[Reader]:
        query = parse_retrieve_query(query_pairs(self.scope))
        return stored_job_reader(
            caller=self.scope[CALLER],
            response_id=self.scope["path"].rpartition("/")[2],
            starting_after=query.starting_after,
        )
