"""The event bus: messages between the processes, by group, over the configured channel layer.

The bus is fast but may lose messages; the database is slow but reliable. A lost message does no harm: messages are
numbered, and readers ask again for missing ones and check the row when none come.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from channels.layers import get_channel_layer

from .exchange import Exchange
from .inbox import Inbox
from .memory import ThreadSafeChannelLayer
from .messages import Bundle, Message, ReaderMessage, Signal
from .publisher import Publisher
from .sizes import BUNDLE_BYTES
from .subscription import RECONNECT_SECONDS, BusUnavailable, Subscription, subscribe

_lock = threading.Lock()
_publisher: Publisher | None = None


def response_group(public_id: str) -> str:
    """Where the readers of a response listen."""
    return f"response.{public_id}"


def process_group(process_id: str) -> str:
    """Where a process listens for requests of others (cancel, resend), and for bundles."""
    return f"process.{process_id}"


def publish(group: str, message: Message) -> None:
    """Send ``message`` to everyone who listens on ``group``. Any thread; never blocks or raises."""
    layer: Any = get_channel_layer()
    if isinstance(layer, ThreadSafeChannelLayer):
        layer.group_post(group, message)
        return
    global _publisher
    if _publisher is None:
        with _lock:
            if _publisher is None:
                _publisher = Publisher(layer)
    _publisher.publish(group, message)


class _Outbox(threading.local):
    """The bundles of a thread inside :func:`together`, by process."""

    bundles: dict[str, list[tuple[str, ReaderMessage]]] | None = None


_outbox = _Outbox()


def publish_to(process_id: str, group: str, message: ReaderMessage) -> None:
    """Send ``message`` to who listens on ``group`` in this process's exchange. Any thread; never blocks or raises."""
    if _outbox.bundles is None:
        _publish_bundles(process_id, [(group, message)])
    else:
        _outbox.bundles.setdefault(process_id, []).append((group, message))


@contextmanager
def together() -> Iterator[None]:
    """What this thread publishes in the block to the exchange of a process leaves at its end, in one message."""
    bundles: dict[str, list[tuple[str, ReaderMessage]]] = {}
    _outbox.bundles = bundles
    try:
        yield
    finally:
        _outbox.bundles = None
        for process_id, messages in bundles.items():
            _publish_bundles(process_id, messages)


def _publish_bundles(process_id: str, messages: Sequence[tuple[str, ReaderMessage]]) -> None:
    """Of about ``BUNDLE_BYTES`` at most; a larger message has its own."""
    first = size = 0
    for end, (_, message) in enumerate(messages):
        more = message.size
        if size and size + more > BUNDLE_BYTES:
            publish(process_group(process_id), Bundle(messages=tuple(messages[first:end])))
            first, size = end, 0
        size += more
    if messages:
        publish(process_group(process_id), Bundle(messages=tuple(messages[first:])))


__all__ = [
    "RECONNECT_SECONDS",
    "BusUnavailable",
    "Exchange",
    "Inbox",
    "Message",
    "Signal",
    "Subscription",
    "process_group",
    "publish",
    "publish_to",
    "response_group",
    "subscribe",
    "together",
]
