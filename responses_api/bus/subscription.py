"""Listening on the channel layer."""

import asyncio
from contextlib import suppress
from typing import Any

import structlog
from channels.layers import get_channel_layer

from .inbox import Inbox
from .messages import Message, NotUnderstood, Wire, from_wire

log = structlog.get_logger(__name__)

RECONNECT_SECONDS = 0.5


class BusUnavailable(Exception):
    """The broker that carries events is unavailable."""


class Subscription(Inbox):
    """A listener on one group. Made by :func:`subscribe`; must be closed. Messages of another version are ignored.

    A separate task reads the layer, since a cancelled ``receive`` of the Redis layer loses the next message.
    """

    def __init__(self, layer: Any, group: str, channel: str) -> None:
        super().__init__()
        self._layer = layer
        self._group = group
        self._channel = channel
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while True:
            try:
                self._take(await self._layer.receive(self._channel))
            except Exception as error:  # the broker is away: whatever the client library raises
                log.warning("bus.receive_failed", group=self._group, error=str(error))
                await asyncio.sleep(RECONNECT_SECONDS)

    def _take(self, wire: Wire | Message) -> None:
        try:
            self.put(from_wire(wire) if isinstance(wire, dict) else wire)
        except NotUnderstood as error:
            log.warning("bus.message_not_understood", group=self._group, error=str(error))

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
