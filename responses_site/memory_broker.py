"""Celery's broker inside one process: kombu's memory transport, told of a message instead of looking for one.

kombu's own asks its queues every so often; each task waits half that time, and an idle server never sleeps.
"""

import threading
import time
from queue import Empty
from typing import Any, ClassVar

from kombu.transport import TRANSPORT_ALIASES, memory

SCHEME = "process-memory"
LONGEST_WAIT_SECONDS = 60.0


class Channel(memory.Channel):
    """A channel whose messages wake whoever drains."""

    arrived: ClassVar = threading.Event()

    def _put(self, queue: str, message: Any, **kwargs: Any) -> None:
        super()._put(queue, message, **kwargs)
        self.arrived.set()

    def _put_fanout(self, exchange: str, message: Any, routing_key: str | None = None, **kwargs: Any) -> None:
        super()._put_fanout(exchange, message, routing_key, **kwargs)
        self.arrived.set()


class Transport(memory.Transport):
    """For one draining thread a process: a message wakes one of them."""

    Channel = Channel

    def drain_events(self, connection: Any, timeout: float | None = None, **_kwargs: Any) -> None:
        """Deliver the next message. Raises ``TimeoutError`` when there is none within ``timeout`` seconds."""
        assert self.cycle is not None
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            # Before the look: a message that comes after it is seen by the wait.
            Channel.arrived.clear()
            try:
                self.cycle.get(self._deliver, timeout=timeout)
            except Empty:
                left = LONGEST_WAIT_SECONDS if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError from None
                Channel.arrived.wait(left)
            else:
                return


def register() -> None:
    """Let broker URLs name it: ``process-memory://``."""
    TRANSPORT_ALIASES[SCHEME] = f"{__name__}:{Transport.__name__}"
