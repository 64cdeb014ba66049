"""``POST /responses`` with ``stream: true``: events as they are made."""

import asyncio
from typing import Any

from channels.generic.http import AsyncHttpConsumer
from django.conf import settings

from responses_api.api.admission import admission
from responses_api.api.exceptions import as_api_error
from responses_api.services.answer_create import running_response
from responses_api.services.follow_response import Follower
from responses_api.streaming import DONE, PING, EncodedEvent, frame

from .router import send_error

HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    # Proxies such as nginx would hold events back.
    (b"x-accel-buffering", b"no"),
]


class ResponseStreamConsumer(AsyncHttpConsumer):
    """One streamed response. The client's leaving and the server's shutdown both end the block that runs the job."""

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
        """Admit, wait for the worker's word, then pass events on until the last."""
        opened: Follower | None = None
        try:
            async with running_response(admission(self.scope)) as follower:
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

    async def send_events(self, events: list[EncodedEvent]) -> None:
        """Send a batch; an empty one keeps the connection alive."""
        await self.send_body(b"".join(frame(kind, text) for kind, text in events) or PING, more_body=True)


async def client_left(receive: Any) -> None:
    """Return when the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
