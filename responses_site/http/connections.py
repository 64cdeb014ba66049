"""The open connections of a process: how many there may be, how long they may be silent, how much they may hold."""

import resource
import time
from collections.abc import Iterator
from typing import Protocol

import structlog
from django.conf import settings

RESERVED_FILES = 256
"""Files that a process needs beside its connections: databases, brokers, models, logs."""
FEWEST = 16
LINGER_SECONDS = 10.0
"""How long the rest of a body may come after its answer."""

log = structlog.get_logger(__name__)


class Connection(Protocol):
    """One of them."""

    @property
    def waits_since(self) -> float | None:
        """Since when nothing of a request is there, or None."""

    @property
    def begins_since(self) -> float | None:
        """Since when the headers of a request have been coming, or None."""

    @property
    def drains_since(self) -> float | None:
        """Since when the rest of a request that has been answered is coming, or None."""

    @property
    def unsent(self) -> int:
        """Bytes that its reader has not taken."""

    @property
    def taken(self) -> int:
        """Bytes that its reader has taken."""

    def refuse_slow_headers(self) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class Connections:
    """All of a process. Used on its event loop alone."""

    def __init__(self) -> None:
        self._progress: dict[Connection, tuple[int, float]] = {}
        """What a reader had taken when that was looked at last, and since when it has been so much."""
        self.limit: int = settings.RESPONSES_MAX_CONNECTIONS

    def __len__(self) -> int:
        return len(self._progress)

    def admit(self, connection: Connection) -> bool:
        """Take a new one, in the place of the one that has been idle longest if need be; whether there is a place."""
        if len(self) >= self.limit:
            idle = [(since, one) for one in self._progress if (since := idle_since(one)) is not None]
            if not idle:
                return False
            oldest = min(idle, key=lambda pair: pair[0])[1]
            self.remove(oldest)
            oldest.abort()
        self._progress[connection] = (0, time.monotonic())
        return True

    def remove(self, connection: Connection) -> None:
        """It is closed."""
        self._progress.pop(connection, None)

    def check(self) -> None:
        """End what has been silent too long, and readers that take nothing."""
        now = time.monotonic()
        for connection in list(self._progress):
            self._check(connection, now)
        self.bound_unsent()

    def _check(self, connection: Connection, now: float) -> None:
        taken, since = connection.taken, self._progress[connection][1]
        if not connection.unsent or taken != self._progress[connection][0]:
            self._progress[connection] = (taken, now)
        elif now - since > settings.RESPONSES_STREAM_WRITE_TIMEOUT_SECONDS:
            connection.abort()
            return
        if is_over(connection.begins_since, now, settings.RESPONSES_READ_TIMEOUT_SECONDS):
            connection.refuse_slow_headers()
        elif is_over(connection.waits_since, now, settings.RESPONSES_IDLE_TIMEOUT_SECONDS):
            connection.close()
        elif is_over(connection.drains_since, now, LINGER_SECONDS):
            connection.abort()

    def bound_unsent(self) -> None:
        """Cut off the readers for whom most is held, until all together hold no more than they may."""
        most: int = settings.RESPONSES_SEND_MAX_BYTES
        held = {connection: size for connection in self._progress if (size := connection.unsent)}
        total = sum(held.values())
        for connection in sorted(held, key=held.__getitem__, reverse=True):
            if total <= most:
                return
            total -= held[connection]
            log.warning("reader.cut_off", unsent=held[connection], limit=most)
            connection.abort()

    def fit_files(self) -> None:
        """Allow this process as many open files as its connections need, or fewer connections."""
        for limit in file_limits(self.limit + RESERVED_FILES):
            if limit >= self.limit + RESERVED_FILES:
                return
        fewer = max(FEWEST, limit - RESERVED_FILES)
        log.warning("connections.limited_by_open_files", wanted=self.limit, limit=fewer, open_files=limit)
        self.limit = fewer


def is_over(since: float | None, now: float, seconds: float) -> bool:
    """Whether something has lasted longer than it may."""
    return since is not None and now - since > seconds


def idle_since(connection: Connection) -> float | None:
    """Since when a connection has carried no request that is being answered; None when it does."""
    if connection.unsent:
        return None
    return next(
        (since for since in (connection.drains_since, connection.waits_since, connection.begins_since) if since), None
    )


def file_limits(wanted: int) -> Iterator[int]:
    """The number of files that may be open (`ulimit -n`); then, if that is too few, after trying to raise it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        yield wanted
        return
    yield soft
    raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, raised), hard))
    except (OSError, ValueError):
        yield soft
    else:
        yield max(soft, raised)
