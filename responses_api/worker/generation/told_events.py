"""What the reader of a foreground response has been told, as much of it as it may ask for again."""

import sys
from collections import deque
from collections.abc import Iterator, Sequence

from responses_api import bus
from responses_api.bus.relayed_errors import error_to_wire
from responses_api.errors import ApiError
from responses_api.services.jobs.leases import Lease
from responses_api.streaming import EncodedEvent

KEPT_BYTES = 4 << 20
"""Of one response's events: a reader misses a moment of its stream, not all of it."""
MESSAGE_BYTES = 1 << 20


class ToldEvents:
    """Publishes events, and the latest of them again. A reader that is further behind is told that it is.

    With ``whole`` the reader waits for the end alone. It holds nothing but events, so that it may outlive a generation.
    """

    def __init__(self, lease: Lease, *, whole: bool) -> None:
        self._lease = lease
        self._whole = whole
        self._events: deque[EncodedEvent] = deque()
        self._first = 0
        self._last: bus.Message | None = None
        """The message that ended it, without events."""
        self.memory = 0
        """Bytes of memory that its events take."""

    @property
    def count(self) -> int:
        """How many events there have been."""
        return self._first + len(self._events)

    def tell(self, events: Sequence[EncodedEvent]) -> None:
        """Publish the next events."""
        first = self.count
        self._keep(events)
        self._send(first, events)

    def end(
        self,
        events: Sequence[EncodedEvent],
        *,
        first: int | None = None,
        error: ApiError | None = None,
        reason: str = "",
    ) -> None:
        """Publish the last events. ``error`` is what a reader of the whole object is told in their place; ``reason``
        says for the log why the response failed.
        """
        first = self.count if first is None else first
        if not self._events:
            self._first = first
        self._last = {"last": True, "error": error_to_wire(error) if error is not None else None, "reason": reason}
        self._keep(events)
        self._send(first, events)

    def refuse(self, error: ApiError) -> None:
        """Publish that the request can't be run."""
        self._last = {"type": "response.refused", "attempt": self._lease.attempt, "error": error_to_wire(error)}
        self._publish(self._last)

    def replay(self, first: int) -> None:
        """Publish again what a reader has missed."""
        if self._last is not None and "type" in self._last:
            self._publish(self._last)
        elif self._whole:
            if self._last is not None:
                self._send(self._first, list(self._events))
        elif first < self._first:
            self._publish({"type": "response.behind", "attempt": self._lease.attempt})
        elif first < self.count:
            self._send(first, list(self._events)[first - self._first :])

    def _keep(self, events: Sequence[EncodedEvent]) -> None:
        for event in events:
            self._events.append(event)
            self.memory += sys.getsizeof(event[1])
        while self.memory > KEPT_BYTES and len(self._events) > 1:
            self.memory -= sys.getsizeof(self._events.popleft()[1])
            self._first += 1

    def _send(self, first: int, events: Sequence[EncodedEvent]) -> None:
        pages = list(paged(events))
        for page in pages:
            about: bus.Message = {"last": False, "error": None, "reason": ""}
            if page is pages[-1] and self._last is not None and first + len(page) == self.count:
                about = self._last
            self._publish(
                {
                    "type": "response.events",
                    "attempt": self._lease.attempt,
                    "worker": self._lease.worker,
                    "first": first,
                    "events": page,
                    "whole": self._whole,
                    **about,
                }
            )
            first += len(page)

    def _publish(self, message: bus.Message) -> None:
        bus.publish(bus.response_group(self._lease.public_id), message)


def paged(events: Sequence[EncodedEvent]) -> Iterator[list[EncodedEvent]]:
    """The events, in lists of which none is much larger than a message should be."""
    page: list[EncodedEvent] = []
    size = 0
    for event in events:
        if page and size + len(event[1]) > MESSAGE_BYTES:
            yield page
            page, size = [], 0
        page.append(event)
        size += len(event[1])
    if page:
        yield page
