"""The reader of a chat: its follower's events become chunks, also large ones, and errors name the chat's parameters."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from responses_api.chat import ChunkStream, Form, translate
from responses_api.errors import ContextLengthExceeded
from responses_api.readers.answer_chat import INLINE_BYTES, ChatReader
from responses_api.streaming import EncodedEvent, encode_event
from tests.streaming.steps import Text
from tests.streaming.test_builder_properties import build

FORM = Form(reasoning_fields=(), version="1")
PLACES = translate({"messages": [{"role": "user", "content": "Hi"}]}).places.of_parameters()


class Followed:
    """Stands for the follower of a response: one batch per event, and a silence before the last."""

    comment = "ping"

    def __init__(self, events: list[Any]) -> None:
        self._events = events

    async def opened(self) -> None:
        raise ContextLengthExceeded("`input` is too long.", param="input")

    async def result(self) -> Any:
        raise ContextLengthExceeded("`input` is too long.", param="input")

    async def batches(self, *, keepalive: float) -> AsyncIterator[list[EncodedEvent]]:
        for event in self._events[:-1]:
            yield [encode_event(event)]
        yield []
        yield [encode_event(self._events[-1])]

    def failure(self, message: str) -> list[EncodedEvent]:
        return [encode_event({"type": "error", "code": None, "message": message, "param": None, "sequence_number": 9})]


def reader(events: list[Any]) -> ChatReader:
    followed: Any = Followed(events)
    return ChatReader(followed, form=FORM, places=PLACES)


@pytest.mark.parametrize("text", ["Hi", "a" * INLINE_BYTES])
async def test_batches(text: str) -> None:
    """Events without chunks are no silence, and a silence stays one."""
    events, _ = build([Text(delta=text)], "completed")
    batches = [batch async for batch in reader(events).batches(keepalive=1)]
    stream = ChunkStream(FORM)
    expected = [chunk for event in events for chunk in stream.feed(event)]
    assert [orjson.loads(chunk) for batch in batches for _, chunk in batch] == expected
    assert {kind for batch in batches for kind, _ in batch} == {""}
    assert [len(batch) for batch in batches] == [1, 1, 0, 1]


async def test_errors() -> None:
    """Before the first chunk, instead of the whole answer, and within a stream."""
    for refused in (reader([]).opened(), reader([]).completion()):
        with pytest.raises(ContextLengthExceeded, match="`messages` is too long") as caught:
            await refused
        assert caught.value.param == "messages"
    [(kind, text)] = reader([]).failure("`text.format` is wrong.")
    assert kind == ""
    assert orjson.loads(text)["error"]["message"] == "`response_format` is wrong."
    assert reader([]).comment == "ping"
