"""Celery's broker within one process: kombu's memory transport, woken by messages instead of polling.

kombu's own transport polls its queues: each task waits half an interval on average, and an idle server never sleeps.
"""

import threading
import time
from queue import Empty
from typing import Any, ClassVar

from kombu.transport import TRANSPORT_ALIASES, memory

SCHEME = "process-memory"
MAX_WAIT_SECONDS = 60.0


class Channel(memory.Channel):
    """A channel whose messages wake the draining thread."""

    arrived: ClassVar = threading.Event()

    def _put(self, queue: str, message: Any, **kwargs: Any) -> None:
        super()._put(queue, message, **kwargs)
        self.arrived.set()

    def _put_fanout(self, exchange: str, message: Any, routing_key: str | None = None, **kwargs: Any) -> None:
        super()._put_fanout(exchange, message, routing_key, **kwargs)
        self.arrived.set()


class Transport(memory.Transport):
    """For one draining thread per process, since a message wakes only one."""

    Channel = Channel

    def drain_events(self, connection: Any, timeout: float | None = None, **_kwargs: Any) -> None:
        """Deliver the next message. Raises ``TimeoutError`` when there is none within ``timeout`` seconds."""
        assert self.cycle is not None
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            # Cleared before the queues are read: a message that arrives afterwards ends the wait.
            Channel.arrived.clear()
            try:
                self.cycle.get(self._deliver, timeout=timeout)
            except Empty:
                left = MAX_WAIT_SECONDS if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError from None
                Channel.arrived.wait(left)
            else:
                return


def register() -> None:
    """Register the transport for broker URLs such as ``process-memory://``."""
    TRANSPORT_ALIASES[SCHEME] = f"{__name__}:{Transport.__name__}"
