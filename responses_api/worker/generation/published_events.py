"""The published events of a foreground response, of which the latest can be published again."""

import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence

from responses_api import bus
from responses_api.bus.messages import (
    ReaderBehind,
    ReaderMessage,
    ResponseEvents,
    ResponseRefused,
    ResponseResult,
    ResponseWaits,
)
from responses_api.bus.relayed_errors import RelayedError
from responses_api.errors import ApiError
from responses_api.services.jobs.leases import Lease
from responses_api.streaming import EncodedEvent

BUFFER_BYTES = 4 << 20
"""Most bytes of events that are kept of one response: a reader may miss some of its stream, but not all of it."""
MESSAGE_BYTES = 1 << 20


class PublishedEvents:
    """Publishes events, and the latest of them again on request. A reader that is further behind gets
    :class:`ReaderBehind`.

    ``reader`` is the process of the reader. With ``whole`` it waits only for the end. This object refers only to
    events, so that it may outlive the run.
    """

    def __init__(self, lease: Lease, *, reader: str, whole: bool) -> None:
        self._lease = lease
        self._reader = reader
        self._whole = whole
        # A reader may ask for missed events while new ones are published.
        self._lock = threading.Lock()
        self._events: deque[EncodedEvent] = deque()
        self._first = 0
        self._has_ended = False
        self._reason = ""
        self._only: ResponseRefused | ResponseResult | None = None
        """The only message, if the response was refused or its reader waits for the whole object."""
        self.memory = 0
        """Bytes of its events in memory."""

    @property
    def count(self) -> int:
        """The number of events so far."""
        return self._first + len(self._events)

    def add(self, events: Sequence[EncodedEvent]) -> None:
        """Publish the next events."""
        with self._lock:
            self._add(events)

    def end(self, events: Sequence[EncodedEvent], *, error: ApiError | None = None, reason: str = "") -> None:
        """Publish the last events. A reader of the whole object gets ``error``, if any, instead; ``reason`` says why
        the response failed, for the log.
        """
        with self._lock:
            self._has_ended, self._reason = True, reason
            if not self._whole:
                self._add(events)
                return
            relayed = RelayedError.of(error) if error is not None else None
            attempt, worker, event = self._lease.attempt, self._lease.worker, events[-1]
            self.memory = sys.getsizeof(event[1])
            self._only = ResponseResult(attempt=attempt, worker=worker, event=event, error=relayed, reason=reason)
            self._publish(self._only)

    def refuse(self, error: ApiError) -> None:
        """Publish that the request can't be run."""
        with self._lock:
            self._only = ResponseRefused(attempt=self._lease.attempt, error=RelayedError.of(error))
            self._publish(self._only)

    def wait(self, what_for: str) -> None:
        """Publish that the response can't begin yet. A reader that misses it misses nothing."""
        self._publish(ResponseWaits(attempt=self._lease.attempt, what_for=what_for))

    def replay(self, first: int) -> None:
        """Publish the events from ``first`` on again."""
        with self._lock:
            if self._only is not None:
                self._publish(self._only)
            elif first < self._first:
                self._publish(ReaderBehind(attempt=self._lease.attempt))
            elif first < self.count:
                self._send(first, list(self._events)[first - self._first :])

    def _add(self, events: Sequence[EncodedEvent]) -> None:
        first = self.count
        self._append(events)
        self._send(first, events)

    def _append(self, events: Sequence[EncodedEvent]) -> None:
        for event in events:
            self._events.append(event)
            self.memory += sys.getsizeof(event[1])
        while self.memory > BUFFER_BYTES and len(self._events) > 1:
            self.memory -= sys.getsizeof(self._events.popleft()[1])
            self._first += 1

    def _send(self, first: int, events: Sequence[EncodedEvent]) -> None:
        for page in paged(events):
            last = self._has_ended and first + len(page) == self.count
            self._publish(
                ResponseEvents(
                    attempt=self._lease.attempt,
                    worker=self._lease.worker,
                    first=first,
                    events=page,
                    last=last,
                    reason=self._reason if last else "",
                )
            )
            first += len(page)

    def _publish(self, message: ReaderMessage) -> None:
        bus.publish_to(self._reader, bus.response_group(self._lease.public_id), message)


def paged(events: Sequence[EncodedEvent]) -> Iterator[tuple[EncodedEvent, ...]]:
    """The events in pages of about ``MESSAGE_BYTES`` at most; a larger event has its own page."""
    page: list[EncodedEvent] = []
    size = 0
    for event in events:
        if page and size + len(event[1]) > MESSAGE_BYTES:
            yield tuple(page)
            page, size = [], 0
        page.append(event)
        size += len(event[1])
    if page:
        yield tuple(page)
