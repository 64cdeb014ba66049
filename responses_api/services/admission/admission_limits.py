"""Limits on waiting and running requests, checked in the transaction that adds one, so that they are never exceeded.

SQLite's transactions are serialised. On PostgreSQL, admissions share a lock while a limit is far away, and are
serialised when it is near: when the concurrent admissions of all connections could reach it together.
"""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection

from responses_api.database.transaction_locks import Lock, lock_statement, lock_until_commit
from responses_api.errors import Overloaded, RateLimited, RequestTooLarge
from responses_api.models import Response
from responses_api.models.store.response import ACTIVE
from responses_api.selectors.models import get_live_workers
from responses_api.services.store.store_admission import refuse_when_jobs_fill_the_store

# Each is an index-only query, since every request waits for the first.
COUNT_INTERACTIVE = """
    SELECT COUNT(*), COALESCE(SUM(size), 0), COUNT(*) FILTER (WHERE key_id = %s),
        COALESCE(SUM(size) FILTER (WHERE key_id = %s), 0), {connections}
    FROM responses_api_response WHERE status IN (%s, %s) AND priority = 0
"""
COUNT_JOBS = """
    SELECT COUNT(*), COUNT(*) FILTER (WHERE key_id = %s) FROM responses_api_response
    WHERE status IN (%s, %s) AND priority = 1
"""
SUM_ACTIVE = "SELECT COALESCE(SUM(size), 0) FROM responses_api_response WHERE status IN (%s, %s)"
CONNECTIONS = "CURRENT_SETTING('max_connections')::integer"

SMALL_BYTES = 256 * 1024
"""Larger requests are always serialised, which bounds the bytes that concurrent admissions could add."""
SHARE = 3
"""A key may use this many times the room that it leaves to others."""


class LimitIsNear(Exception):
    """Whether there is room can be decided only by a transaction that excludes all other admissions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The active foreground requests, of all keys and of one key, and their limits."""

    places: int
    bytes: int
    slots: int
    used: int
    used_bytes: int
    own: int
    own_bytes: int
    is_shared: bool
    """Whether the request has a key, so that it has to leave room for other keys."""

    def refuse(self, size: int, *, ahead: int = 0) -> None:
        """Raise an error when a request of ``size`` bytes would have no room after ``ahead`` concurrent small ones."""
        used, own = self.used + ahead, self.own + ahead
        used_bytes, own_bytes = self.used_bytes + ahead * SMALL_BYTES, self.own_bytes + ahead * SMALL_BYTES
        if used >= self.places:
            raise Overloaded("The server's queue is full. Try again in a few seconds.")
        if used_bytes + size > self.bytes:
            raise Overloaded(
                f"The requests that wait have {used_bytes} bytes, and with this one's {size} they would have more than "
                f"{self.bytes} (RESPONSES_QUEUE_MAX_BYTES). Try again in a few seconds."
            )
        if not self.is_shared:
            return
        if own + 1 > self.slots + SHARE * (self.places - used - 1):
            raise RateLimited(
                f"{own} requests of this key wait or run, and the server's queue keeps the room that is left for "
                "others (RESPONSES_MAX_QUEUE). Try again when some have ended."
            )
        if own and own_bytes + size > SHARE * (self.bytes - used_bytes - size):
            raise RateLimited(
                f"The requests of this key that wait or run have {own_bytes} bytes, and the server's queue keeps the "
                "room that is left for others (RESPONSES_QUEUE_MAX_BYTES). Try again when some have ended."
            )


def take_place(row: Response, *, is_alone: bool) -> None:
    """Check the limits in the transaction that inserts this row next.

    Raises an :class:`ApiError` when there is no room, and :class:`LimitIsNear` when that can't be decided beside other
    admissions: the caller then rolls the transaction back and starts it again with ``is_alone``.
    """
    size = len(row.request.encode()) + len(row.body.encode())
    if row.background:
        lock_until_commit(Lock.JOBS)
        refuse_job_when_full(key_id=row.key_id)
    else:
        take_interactive_place(row, size=size, is_alone=is_alone)
    if (row.store or row.background) and settings.RESPONSES_STORE_MAX_BYTES is not None:
        lock_until_commit(Lock.ACTIVE_BYTES)
        refuse_when_bytes_fill_the_store(request=len(row.request.encode()), background=row.background)


def take_interactive_place(row: Response, *, size: int, is_alone: bool) -> None:
    """Check the limits on foreground requests. Raises what :func:`take_place` does."""
    if size > settings.RESPONSES_QUEUE_MAX_BYTES:
        raise RequestTooLarge(
            f"The request takes {size} bytes, and all that wait together may take {settings.RESPONSES_QUEUE_MAX_BYTES} "
            "(RESPONSES_QUEUE_MAX_BYTES). Shorten the input.",
            param="input",
        )
    if size > SMALL_BYTES and not is_alone and connection.vendor == "postgresql":
        raise LimitIsNear
    used, used_bytes, own, own_bytes, connections = count_interactive(row.key_id, shared=not is_alone)
    slots = get_live_workers().slots
    room = Room(
        places=settings.RESPONSES_MAX_QUEUE + slots,
        bytes=settings.RESPONSES_QUEUE_MAX_BYTES,
        slots=slots,
        used=used,
        used_bytes=used_bytes,
        own=own,
        own_bytes=own_bytes,
        is_shared=row.key_id is not None,
    )
    if is_alone:
        room.refuse(size)
        return
    try:
        room.refuse(size, ahead=connections)
    except (Overloaded, RateLimited):
        if connections:
            raise LimitIsNear from None
        raise


def count_interactive(key_id: int | None, *, shared: bool) -> tuple[Any, ...]:
    """Requests and bytes of all keys, requests and bytes of this key, and the database's ``max_connections``."""
    postgresql = connection.vendor == "postgresql"
    statement = COUNT_INTERACTIVE.format(connections=CONNECTIONS if postgresql else "0")
    with connection.cursor() as cursor:
        # One round trip; the count is a statement of its own, so that its snapshot is taken after the lock.
        cursor.execute(lock_statement(Lock.QUEUE, shared=shared) + statement, [key_id, key_id, *ACTIVE])
        if postgresql:
            cursor.nextset()
        counts: tuple[Any, ...] = cursor.fetchone()
        return counts


def refuse_job_when_full(*, key_id: int | None) -> None:
    """Raise :class:`RateLimited` when there are already as many background jobs as allowed."""
    with connection.cursor() as cursor:
        cursor.execute(COUNT_JOBS, [key_id, *ACTIVE])
        jobs, own_jobs = cursor.fetchone()
    limit, own_limit = settings.RESPONSES_BACKGROUND_MAX_JOBS, settings.RESPONSES_BACKGROUND_MAX_JOBS_PER_KEY
    if jobs >= limit:
        raise RateLimited(
            f"{jobs} background responses wait or run, and no more than {limit} may (RESPONSES_BACKGROUND_MAX_JOBS). "
            "Try again when some have ended.",
            param="background",
        )
    if own_limit and own_jobs >= own_limit:
        raise RateLimited(
            f"{own_jobs} background responses of this key wait or run, and no more than {own_limit} may "
            "(RESPONSES_BACKGROUND_MAX_JOBS_PER_KEY). Try again when some have ended.",
            param="background",
        )


def refuse_when_bytes_fill_the_store(*, request: int, background: bool) -> None:
    """Raise :class:`RateLimited` when the active requests and this one would exceed the store's limit."""
    with connection.cursor() as cursor:
        cursor.execute(SUM_ACTIVE, ACTIVE)
        (active_bytes,) = cursor.fetchone()
    refuse_when_jobs_fill_the_store(active=int(active_bytes), request=request, background=background)
