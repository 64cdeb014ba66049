"""The event bus: messages between the processes, by group, over the configured channel layer.

The bus is fast but may lose messages; the database is slow but reliable. A lost message does no harm: messages are
numbered, and readers ask again for missing ones and check the row when none come.
"""

import asyncio
import threading
from contextlib import suppress
from typing import Any

import structlog
from channels.layers import get_channel_layer

from .memory import ThreadSafeChannelLayer
from .messages import Message, NotUnderstood, Signal, Wire, from_wire
from .publisher import Publisher
from .sizes import BUFFER_BYTES, size_of

log = structlog.get_logger(__name__)

_lock = threading.Lock()
_publisher: Publisher | None = None

RECONNECT_SECONDS = 0.5


def response_group(public_id: str) -> str:
    """Where the readers of a response listen."""
    return f"response.{public_id}"


def process_group(process_id: str) -> str:
    """Where a process listens for requests of others (cancel, resend)."""
    return f"process.{process_id}"


def publish(group: str, message: Message) -> None:
    """Send ``message`` to everyone who listens on ``group``. Any thread; never blocks or raises."""
    layer: Any = get_channel_layer()
    if isinstance(layer, ThreadSafeChannelLayer):
        layer.group_post(group, message.to_wire())
        return
    global _publisher
    if _publisher is None:
        with _lock:
            if _publisher is None:
                _publisher = Publisher(layer)
    _publisher.publish(group, message)


class BusUnavailable(Exception):
    """The broker that carries events is unavailable."""


class Subscription:
    """A listener on one group. Made by :func:`subscribe`; must be closed. Messages of another version are ignored.

    A separate task reads the layer, since a cancelled ``receive`` of the Redis layer loses the next message. It buffers
    messages for the listener, up to ``BUFFER_BYTES``.
    """

    def __init__(self, layer: Any, group: str, channel: str) -> None:
        self._layer = layer
        self._group = group
        self._channel = channel
        self._messages: asyncio.Queue[tuple[int, Message | Signal]] = asyncio.Queue()
        self._size = 0
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while True:
            try:
                self._take(await self._layer.receive(self._channel))
            except Exception as error:  # the broker is away: whatever the client library raises
                log.warning("bus.receive_failed", group=self._group, error=str(error))
                await asyncio.sleep(RECONNECT_SECONDS)

    def _take(self, wire: Wire) -> None:
        size = size_of(wire)
        if self._size + size > BUFFER_BYTES and not self._messages.empty():
            return  # the listener sees a gap, and asks again
        try:
            message = from_wire(wire)
        except NotUnderstood as error:
            log.warning("bus.message_not_understood", group=self._group, error=str(error))
            return
        self._size += size
        self._messages.put_nowait((size, message))

    async def receive(self, timeout: float | None = None) -> Message | Signal | None:
        """The next message or signal, or ``None`` after ``timeout`` seconds without one."""
        try:
            if self._messages.empty():
                async with asyncio.timeout(timeout):
                    size, message = await self._messages.get()
            else:
                size, message = self._messages.get_nowait()
        except TimeoutError:
            return None
        self._size -= size
        return message

    def inject(self, message: Message | Signal) -> None:
        """Give the listener a message of its own process, on its loop."""
        self._messages.put_nowait((0, message))

    async def close(self) -> None:
        """Stop listening, and remove everything of it from the layer."""
        try:
            await self._layer.group_discard(self._group, self._channel)
        finally:
            # The Redis layer forgets a channel when its receive is cancelled, so that must have started.
            await asyncio.sleep(0)
            self._task.cancel()
            await asyncio.wait((self._task,))


async def subscribe(group: str) -> Subscription:
    """Listen on ``group``: messages published after this returns are received. Raises :class:`BusUnavailable`."""
    # In a separate task: if it was cancelled half way, nobody could close the channel.
    opening = asyncio.create_task(_open(group))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        closing = asyncio.create_task(_close_unwanted(opening))
        _closing.add(closing)
        closing.add_done_callback(_closing.discard)
        raise


_closing: set["asyncio.Task[None]"] = set()


async def _open(group: str) -> Subscription:
    layer: Any = get_channel_layer()
    subscription = None
    try:
        channel = await layer.new_channel()
        subscription = Subscription(layer, group, channel)
        await layer.group_add(group, channel)
    except Exception as error:  # whatever the client library raises
        log.warning("bus.subscribe_failed", group=group, error=str(error))
        if subscription is not None:
            with suppress(Exception):
                await subscription.close()
        raise BusUnavailable from error
    return subscription


async def _close_unwanted(opening: "asyncio.Task[Subscription]") -> None:
    with suppress(Exception):
        await (await opening).close()


__all__ = [
    "BusUnavailable",
    "Message",
    "Signal",
    "Subscription",
    "process_group",
    "publish",
    "response_group",
    "subscribe",
]
