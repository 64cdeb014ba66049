"""`POST /chat/completions`: a response that is read as a chat completion, as a whole or in chunks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import orjson
from django.conf import settings

from responses_api.caller import Caller
from responses_api.chat import (
    READ,
    REASONING_FIELDS,
    ChatCompletion,
    ChunkStream,
    Form,
    Places,
    chat_completion,
    translate,
)
from responses_api.models import Response
from responses_api.protocol import objects
from responses_api.protocol.json.reader import read_stored
from responses_api.services.admission.create_response import create_response
from responses_api.streaming import EncodedEvent

from .answer_create import running_response
from .follow_response import Follower
from .request_body import RequestBody

INLINE_BYTES = 1 << 16
"""An event of at most this many bytes takes a millisecond or two and is read on the event loop."""
UNNAMED = ""
"""The type of a chunk: chats' events have none."""


class ChatReader:
    """Reads a response's events as chunks. Errors name the chat's parameters."""

    def __init__(self, follower: Follower, *, form: Form, places: Places) -> None:
        self._follower = follower
        self._form = form
        self._places = places
        self._chunks = ChunkStream(form, reword=places.reword)

    @property
    def comment(self) -> str:
        return self._follower.comment

    async def opened(self) -> None:
        """Wait until a worker has accepted the request. Raises the :class:`ApiError` of a refusal."""
        with self._places.named():
            await self._follower.opened()

    async def batches(self, *, keepalive: float) -> AsyncIterator[list[EncodedEvent]]:
        """The chunks, in batches as they come; an empty batch after ``keepalive`` silent seconds. Ends by itself."""
        async for events in self._follower.batches(keepalive=keepalive):
            chunks = [chunk for kind, text in events if kind in READ for chunk in self._chunks_of(await decoded(text))]
            if chunks or not events:
                yield chunks

    def failure(self, message: str) -> list[EncodedEvent]:
        """The error that ends an open stream."""
        events = self._follower.failure(message)
        return [chunk for kind, text in events if kind in READ for chunk in self._chunks_of(orjson.loads(text))]

    async def completion(self) -> ChatCompletion:
        """Wait for the end; the whole completion. Raises the :class:`ApiError` of a refusal or a failure."""
        with self._places.named():
            response = cast("objects.Response", await self._follower.result())
        return chat_completion(response, self._form)

    def _chunks_of(self, event: objects.StreamEvent) -> list[EncodedEvent]:
        return [(UNNAMED, orjson.dumps(chunk).decode()) for chunk in self._chunks.feed(event)]


async def decoded(text: str) -> Any:
    """The event of this text. A large one, which has the whole response, is read in steps on another thread."""
    return orjson.loads(text) if len(text) <= INLINE_BYTES else await asyncio.to_thread(read_stored, text)


@asynccontextmanager
async def running_chat(*, caller: Caller, body: RequestBody) -> AsyncIterator[ChatReader]:
    """Admit the request, and read its response. Leaving the block before its end cancels the job."""
    admitted: list[tuple[Form, Places]] = []

    def create(*, caller: Caller, payload: Any, public_id: str, reader: str) -> Response:
        translation = translate(payload)
        form = Form(
            reasoning_fields=REASONING_FIELDS[settings.RESPONSES_CHAT_REASONING_FIELD],
            version=settings.RESPONSES_VERSION,
            has_metadata=translation.request.metadata is not None,
            has_usage=translation.request.includes_usage,
        )
        with translation.places.named():
            row = create_response(caller=caller, payload=translation.payload, public_id=public_id, reader=reader)
        admitted.append((form, translation.places.of_parameters()))
        return row

    async with running_response(create, caller=caller, body=body) as follower:
        ((form, places),) = admitted
        yield ChatReader(follower, form=form, places=places)
