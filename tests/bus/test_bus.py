"""The bus in one process: any thread sends, event loops receive, nothing is lost or reordered."""

import asyncio
import threading
from typing import Any
from unittest.mock import patch

from channels.layers import get_channel_layer

from responses_api import bus
from responses_api.bus import Subscription, publish, subscribe
from responses_api.bus.memory import ThreadSafeChannelLayer
from responses_api.bus.messages import Bundle, CancelRow, JobEvents, Message, ReaderBehind, ResendEvents, ResponseEvents
from responses_api.bus.publisher import merged
from responses_api.bus.sizes import BUFFER_BYTES, BUNDLE_BYTES


async def test_messages_of_many_threads_arrive_in_each_thread_s_order() -> None:
    """A subscriber gets every message, and those of one thread in the order in which they were sent."""
    subscription = await subscribe("numbers")
    threads, count = 4, 500

    def send(name: int) -> None:
        for number in range(count):
            publish("numbers", ResendEvents(response=str(name), first=number))

    senders = [threading.Thread(target=send, args=(name,)) for name in range(threads)]
    for sender in senders:
        sender.start()
    seen: dict[str, list[int]] = {str(name): [] for name in range(threads)}
    for _ in range(threads * count):
        message = await subscription.receive(10)
        assert isinstance(message, ResendEvents)
        seen[message.response].append(message.first)
    for sender in senders:
        sender.join()
    await subscription.close()
    assert all(numbers == list(range(count)) for numbers in seen.values())


async def test_a_timeout_loses_no_message() -> None:
    """A message that comes after a timeout is returned by the next receive."""
    subscription = await subscribe("late")
    assert await subscription.receive(0.01) is None
    publish("late", CancelRow(row=1))
    assert await subscription.receive(5) == CancelRow(row=1)
    await subscription.close()
    publish("late", CancelRow(row=2))


async def test_a_reader_far_behind_loses_the_newest_and_the_sender_never_waits() -> None:
    """The layer keeps `capacity` messages per channel."""
    layer = ThreadSafeChannelLayer(capacity=3)
    for number in range(5):
        layer.post("slow", {"type": "n", "number": number})
    received = [await layer.receive("slow") for _ in range(3)]
    assert received == [{"type": "n", "number": number} for number in range(3)]
    waiting = asyncio.ensure_future(layer.receive("slow"))
    await asyncio.sleep(0)
    layer.post("slow", {"type": "n", "number": 9})
    assert await waiting == {"type": "n", "number": 9}


async def test_waiting_messages_are_bounded_in_bytes() -> None:
    """In the layer, in a subscription and before a broker. The newest are dropped; one is always accepted."""
    large = JobEvents(first=0, events=(("delta", "x" * (BUFFER_BYTES // 4 + 1)),))
    layer = ThreadSafeChannelLayer()
    await layer.group_add("group", "slow")
    for _ in range(10):
        layer.group_post("group", large.to_wire())
    assert len(layer._buffers["slow"].messages) == 3
    subscription = await subscribe("slow")
    for _ in range(10):
        publish("slow", large)
        await asyncio.sleep(0.01)
    subscription.inject(bus.Signal.LOST)
    received = [await subscription.receive(0.1) for _ in range(5)]
    assert received == [large, large, large, bus.Signal.LOST, None]
    publish("slow", JobEvents(first=0, events=(("delta", "x" * 2 * BUFFER_BYTES),)))
    assert await subscription.receive(5) is not None
    await subscription.close()


async def test_a_channel_that_closes_leaves_no_buffer() -> None:
    """Even while messages for its group keep coming."""
    layer = ThreadSafeChannelLayer()
    over = threading.Event()

    def send() -> None:
        while not over.is_set():
            layer.group_post("group", {"type": "n"})

    sender = threading.Thread(target=send)
    sender.start()
    for number in range(500):
        await layer.group_add("group", f"channel-{number}")
        await asyncio.sleep(0)
        await layer.group_discard("group", f"channel-{number}")
    over.set()
    sender.join()
    assert layer._buffers == {}


async def test_a_cancelled_subscription_leaves_nothing(settings: Any, redis_url: str) -> None:
    """Cancelled at any step, or closed at once: Redis has neither its channel nor its group."""
    settings.CHANNEL_LAYERS = {
        "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [redis_url]}}
    }
    layer: Any = get_channel_layer()
    await (await subscribe("first")).close()
    for steps in range(12):
        subscribing = asyncio.ensure_future(subscribe(f"left.{steps}"))
        for _ in range(steps):
            await asyncio.sleep(0.0005)
        subscribing.cancel()
        for result in await asyncio.gather(subscribing, return_exceptions=True):
            if isinstance(result, Subscription):
                await result.close()
    await asyncio.gather(*bus.subscription._closing)
    inner = layer._get_layer()
    assert not inner.channels
    assert not inner.groups
    await layer.flush()


def test_waiting_messages_are_joined() -> None:
    """Consecutive events of a job, and bundles up to a size; gaps and other messages stay apart."""

    def events(first: int, *kinds: str, last: bool = False) -> Message:
        return JobEvents(first=first, events=tuple((kind, "{}") for kind in kinds), last=last)

    joined = merged([events(0, "a"), events(1, "b", "c"), events(3, "d", last=True)])
    assert joined == [events(0, "a", "b", "c", "d", last=True)]
    apart = [events(0, "a"), events(2, "c"), ReaderBehind(attempt=2)]
    assert merged(apart) == apart
    behind = ReaderBehind(attempt=1)
    one, two = ("one", behind), ("two", behind)
    large = ("one", ResponseEvents(attempt=1, worker="w", first=0, events=(("delta", "x" * BUNDLE_BYTES),)))
    assert merged([Bundle(messages=(one,)), Bundle(messages=(two,))]) == [Bundle(messages=(one, two))]
    assert len(merged([Bundle(messages=(one,)), Bundle(messages=(large,))])) == 2


async def test_what_is_published_together_travels_together() -> None:
    """Each listener gets its messages in their order, and one that has left none; a bundle is bounded in bytes."""
    exchange = bus.Exchange(await subscribe(bus.process_group("web_1")))
    one, two = exchange.listen("one"), exchange.listen("two")
    exchange.listen("gone")
    exchange.leave("gone")
    large = [
        ResponseEvents(attempt=1, worker="w", first=number, events=(("delta", "x" * (BUNDLE_BYTES // 2 + 1)),))
        for number in range(3)
    ]
    with patch.object(bus, "publish", wraps=bus.publish) as published:
        with bus.together():
            for message in large:
                bus.publish_to("web_1", "one", message)
            for group in ("two", "gone"):
                bus.publish_to("web_1", group, ReaderBehind(attempt=1))
            assert not published.called
        bus.publish_to("web_1", "two", ReaderBehind(attempt=2))
    assert published.call_count == 4
    assert [await one.receive(5) for _ in large] == large
    assert [await two.receive(5) for _ in range(2)] == [ReaderBehind(attempt=1), ReaderBehind(attempt=2)]
    assert (await one.receive(0.01), await two.receive(0)) == (None, None)
    await exchange.close()
