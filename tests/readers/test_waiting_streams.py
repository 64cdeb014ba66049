"""A stream whose response can't begin yet says why in comments, which clients pass over."""

import asyncio

import pytest
from asgiref.sync import sync_to_async

from responses_api import bus
from responses_api.bus.messages import ResponseEvents, ResponseWaits
from responses_api.readers.follow_response import follow
from responses_api.readers.web_process import web_process
from responses_api.streaming import PING
from tests.turns import ApiUser

pytestmark = pytest.mark.django_db(transaction=True)


def events(first: int, *, last: bool = False) -> ResponseEvents:
    return ResponseEvents(attempt=1, worker="worker_1", first=first, events=(("some.event", "{}"),), last=last)


async def test_it_says_so_at_once_and_again_until_it_begins() -> None:
    someone = await sync_to_async(ApiUser.make)()
    follower = await follow(await sync_to_async(someone.turn)("hello"))

    def publish(message: ResponseEvents | ResponseWaits) -> None:
        bus.publish_to(web_process.id, bus.response_group(follower.public_id), message)

    publish(events(0))
    await follower.opened()
    batches = follower.batches(keepalive=0.1)
    assert await anext(batches) == [("some.event", "{}")]
    assert follower.comment == PING
    publish(ResponseWaits(attempt=1, what_for="the model b is being loaded"))
    async with asyncio.timeout(5):
        for _ in range(2):  # the message, then silence
            assert await anext(batches) == []
            assert follower.comment == "waiting: the model b is being loaded"
        publish(events(1, last=True))
        while await anext(batches) == []:
            pass
    assert follower.comment == PING
    assert follower.ended
    follower.close()
