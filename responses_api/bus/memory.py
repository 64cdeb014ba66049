"""A channel layer inside one process whose messages may come from any thread.

Channels' own in-memory layer belongs to one event loop: a message sent from another thread waits until the loop
wakes up for another reason. Here a lock guards the buffers, and a waiting reader is woken on its own loop.
"""

import asyncio
import threading
import uuid
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from .inbox import resolve
from .messages import Message, Wire
from .sizes import BUFFER_BYTES, size_of


@dataclass(slots=True)
class _Buffer:
    """Unread messages of one channel; never empty."""

    messages: deque[tuple[int, Wire | Message]] = field(default_factory=deque)
    size: int = 0


def _size(message: Wire | Message) -> int:
    return size_of(message) if isinstance(message, dict) else message.size


class ThreadSafeChannelLayer:
    """The part of the channel layer interface that Channels' consumers and our bus use. Our messages pass as they are.

    A reader that falls more than ``capacity`` messages, or ``BUFFER_BYTES``, behind loses the newest ones; readers of
    the bus number their messages, see the gap and ask again.
    """

    extensions = ("groups",)

    def __init__(self, *, capacity: int = 10_000, **_config: Any) -> None:
        self.capacity = capacity
        self._lock = threading.Lock()
        self._buffers: dict[str, _Buffer] = {}
        self._waiters: dict[str, asyncio.Future[None]] = {}
        self._groups: dict[str, set[str]] = {}

    def post(self, channel: str, message: Wire | Message) -> None:
        """Deliver ``message`` to ``channel``, from any thread, without waiting."""
        with self._lock:
            waiter = self._put(channel, message, _size(message))
        if waiter is not None:
            self._wake(waiter)

    def group_post(self, group: str, message: Wire | Message) -> None:
        """Deliver ``message`` to every channel of ``group``, from any thread, without waiting."""
        size = _size(message)
        # All of it under the lock: a channel that closes meanwhile would get a buffer that nobody reads.
        with self._lock:
            waiters = [self._put(channel, message, size) for channel in self._groups.get(group, ())]
        for waiter in waiters:
            if waiter is not None:
                self._wake(waiter)

    def _put(self, channel: str, message: Wire | Message, size: int) -> "asyncio.Future[None] | None":
        buffer = self._buffers.setdefault(channel, _Buffer())
        if buffer.messages and (len(buffer.messages) >= self.capacity or buffer.size + size > BUFFER_BYTES):
            return None
        buffer.messages.append((size, message))
        buffer.size += size
        return self._waiters.pop(channel, None)

    @staticmethod
    def _wake(waiter: "asyncio.Future[None]") -> None:
        loop = waiter.get_loop()
        try:
            loop.call_soon_threadsafe(resolve, waiter)
        except RuntimeError:
            if not loop.is_closed():
                raise

    async def new_channel(self, prefix: str = "specific") -> str:
        """A fresh channel name."""
        return f"{prefix}!{uuid.uuid4().hex}"

    async def send(self, channel: str, message: Wire | Message) -> None:
        """Deliver ``message`` to ``channel``."""
        self.post(channel, message)

    async def receive(self, channel: str) -> Wire | Message:
        """The next message of ``channel``; waits for one. A cancelled wait loses nothing."""
        while True:
            with self._lock:
                buffer = self._buffers.get(channel)
                if buffer is not None:
                    size, message = buffer.messages.popleft()
                    buffer.size -= size
                    if not buffer.messages:
                        del self._buffers[channel]
                    return message
                waiter = self._waiters.get(channel)
                if waiter is None or waiter.done():
                    waiter = asyncio.get_running_loop().create_future()
                    self._waiters[channel] = waiter
            try:
                await waiter
            finally:
                with self._lock:
                    if self._waiters.get(channel) is waiter:
                        del self._waiters[channel]

    async def group_add(self, group: str, channel: str) -> None:
        """Deliver the messages of ``group`` to ``channel``, too."""
        with self._lock:
            self._groups.setdefault(group, set()).add(channel)

    async def group_discard(self, group: str, channel: str) -> None:
        """Undo :meth:`group_add`, and drop the unread messages of ``channel``."""
        with self._lock:
            members = self._groups.get(group)
            if members is not None:
                members.discard(channel)
                if not members:
                    del self._groups[group]
            self._buffers.pop(channel, None)

    async def group_send(self, group: str, message: Wire | Message) -> None:
        """Deliver ``message`` to every channel of ``group``."""
        self.group_post(group, message)
