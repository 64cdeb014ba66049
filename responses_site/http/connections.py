"""The open connections of a process, with limits on their number, their timeouts and their unsent bytes."""

import resource
import time
from collections.abc import Iterator
from typing import Protocol

import structlog
from django.conf import settings

RESERVED_FILES = 256
"""Open files that a process needs besides its connections: databases, brokers, models, logs."""
FEWEST = 16
LINGER_SECONDS = 10.0
"""How long the rest of a body may arrive after its response."""

log = structlog.get_logger(__name__)


class Connection(Protocol):
    """An open connection."""

    @property
    def waits_since(self) -> float | None:
        """The time since which it has been idle, without any part of a request, or None."""

    @property
    def begins_since(self) -> float | None:
        """The time since which the headers of a request have been arriving, or None."""

    @property
    def drains_since(self) -> float | None:
        """The time since which the rest of an answered request has been arriving, or None."""

    @property
    def unsent(self) -> int:
        """Bytes that were written and that the client has not read."""

    @property
    def taken(self) -> int:
        """Bytes that the client has read."""

    def refuse_slow_headers(self) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class Connections:
    """All connections of a process. Used on its event loop only."""

    def __init__(self) -> None:
        self._progress: dict[Connection, tuple[int, float]] = {}
        """Per connection, the value of ``taken`` at the last check, and the time since which it has not changed."""
        self.limit: int = settings.RESPONSES_MAX_CONNECTIONS

    def __len__(self) -> int:
        return len(self._progress)

    def admit(self, connection: Connection) -> bool:
        """Add a connection, if necessary in place of the one that has been idle longest; False without a place."""
        if len(self) >= self.limit:
            idle = [(since, other) for other in self._progress if (since := idle_since(other)) is not None]
            if not idle:
                return False
            oldest = min(idle, key=lambda pair: pair[0])[1]
            self.remove(oldest)
            oldest.abort()
        self._progress[connection] = (0, time.monotonic())
        return True

    def remove(self, connection: Connection) -> None:
        """Remove a connection that is closed."""
        self._progress.pop(connection, None)

    def check(self) -> None:
        """End connections that have exceeded a timeout, or whose clients read nothing."""
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
        """Abort the connections with the most unsent bytes, until the total is within its limit."""
        limit: int = settings.RESPONSES_SEND_MAX_BYTES
        unsent = {connection: size for connection in self._progress if (size := connection.unsent)}
        total = sum(unsent.values())
        for connection in sorted(unsent, key=unsent.__getitem__, reverse=True):
            if total <= limit:
                return
            total -= unsent[connection]
            log.warning("reader.cut_off", unsent=unsent[connection], limit=limit)
            connection.abort()

    def fit_files(self) -> None:
        """Raise the process's limit on open files to what its connections need, or lower the limit on connections."""
        for limit in file_limits(self.limit + RESERVED_FILES):
            if limit >= self.limit + RESERVED_FILES:
                return
        fewer = max(FEWEST, limit - RESERVED_FILES)
        log.warning("connections.limited_by_open_files", wanted=self.limit, limit=fewer, open_files=limit)
        self.limit = fewer


def is_over(since: float | None, now: float, seconds: float) -> bool:
    """Whether more than ``seconds`` have passed since a time; False for None."""
    return since is not None and now - since > seconds


def idle_since(connection: Connection) -> float | None:
    """The time since which a connection has had no request that is being answered; None when it has one."""
    if connection.unsent:
        return None
    return next(
        (since for since in (connection.drains_since, connection.waits_since, connection.begins_since) if since), None
    )


def file_limits(wanted: int) -> Iterator[int]:
    """The limit on open files (`ulimit -n`), then, if that is too low, the limit after an attempt to raise it."""
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
