"""The messages that wait for one listener."""

import asyncio
from collections import deque

from .messages import Message, Signal
from .sizes import BUFFER_BYTES


class Inbox:
    """In order, up to ``BUFFER_BYTES``: a listener that falls further behind misses the newest. Used on one event loop,
    by one listener.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Message | Signal]] = deque()
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None

    def put(self, message: Message) -> None:
        """Add a message; if there is no room, the listener sees a gap, and asks again."""
        size = message.size
        if self._waiting and self._size + size > BUFFER_BYTES:
            return
        self._size += size
        self._add(size, message)

    def inject(self, message: Message | Signal) -> None:
        """Add a message of the listener's own process, which has room in any case."""
        self._add(0, message)

    def _add(self, size: int, message: Message | Signal) -> None:
        self._waiting.append((size, message))
        if self._waiter is not None:
            resolve(self._waiter)

    async def receive(self, timeout: float | None = None) -> Message | Signal | None:
        """The next message or signal, or ``None`` after ``timeout`` seconds without one."""
        if not self._waiting:
            await self._wait(timeout)
            if not self._waiting:
                return None
        size, message = self._waiting.popleft()
        self._size -= size
        return message

    async def _wait(self, timeout: float | None) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = waiter = loop.create_future()
        # Once for each token of a stream: `asyncio.timeout` and `asyncio.Queue` would take three times as long.
        timer = loop.call_later(timeout, resolve, waiter) if timeout is not None else None
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()


def resolve(waiter: "asyncio.Future[None]") -> None:
    """Wake a waiter, unless it was woken before or has left."""
    if not waiter.done():
        waiter.set_result(None)
