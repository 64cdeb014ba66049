"""Sending from threads through a channel layer that lives on an event loop (Redis).

One persistent loop on one thread: a loop per message would cost twenty times the send. Messages of a group leave in the
order in which they were given; those that wait for the same group leave as one message where they can be joined.
"""

import asyncio
import threading
from collections import deque
from dataclasses import replace
from typing import Any

import structlog

from .messages import Bundle, JobEvents, Message
from .sizes import BUNDLE_BYTES

log = structlog.get_logger(__name__)

PENDING_BYTES = 32 << 20


class Publisher:
    """Owns a thread with an event loop and sends in order. Never raises into the caller, never blocks it.

    A message that can't be sent (broker away), or that comes when ``PENDING_BYTES`` wait already, is dropped with a
    warning: readers number what they get and recover.
    """

    def __init__(self, layer: Any) -> None:
        self._layer = layer
        self._pending: deque[tuple[str, Message]] = deque()
        self._size = 0
        self._is_full = False
        self._ready: asyncio.Event | None = None
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="bus-publisher", daemon=True)
        self._thread.start()

    def publish(self, group: str, message: Message) -> None:
        """Hand over a message for ``group``; any thread."""
        size = message.size
        with self._lock:
            first = not self._pending
            was_full, self._is_full = self._is_full, not first and self._size + size > PENDING_BYTES
            if self._is_full:
                if not was_full:
                    log.warning("bus.messages_dropped", group=group)
                return
            self._size += size
            self._pending.append((group, message))
        if first:
            self._loop.call_soon_threadsafe(self._signal)

    def _signal(self) -> None:
        if self._ready is not None:
            self._ready.set()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._send_all())

    async def _send_all(self) -> None:
        self._ready = asyncio.Event()
        while True:
            with self._lock:
                batch = list(self._pending)
                self._pending.clear()
                self._size = 0
            if not batch:
                await self._ready.wait()
                self._ready.clear()
                continue
            groups: dict[str, list[Message]] = {}
            for group, message in batch:
                groups.setdefault(group, []).append(message)
            await asyncio.gather(*(self._send_group(group, merged(messages)) for group, messages in groups.items()))

    async def _send_group(self, group: str, messages: list[Message]) -> None:
        for message in messages:
            try:
                await self._layer.group_send(group, message.to_wire())
            except Exception as error:  # the broker is away: whatever the client library raises
                log.warning("bus.send_failed", group=group, error=str(error))


def merged(messages: list[Message]) -> list[Message]:
    """The same messages, with bundles joined, and consecutive events of a job."""
    result: list[Message] = []
    for message in messages:
        joined = _joined(result[-1], message) if result else None
        if joined is None:
            result.append(message)
        else:
            result[-1] = joined
    return result


def _joined(earlier: Message, later: Message) -> Message | None:
    """One message for both; ``None`` when the later one does not continue the earlier one."""
    match earlier, later:
        case (Bundle(), Bundle()) if earlier.size + later.size <= BUNDLE_BYTES:
            return Bundle(messages=earlier.messages + later.messages)
        case (JobEvents(), JobEvents()) if earlier.first + len(earlier.events) == later.first:
            return replace(later, first=earlier.first, events=earlier.events + later.events)
        case _:
            return None
