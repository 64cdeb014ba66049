"""Limits on what waits and runs, counted in the transaction that adds to it: never one more than a limit gets in.

SQLite's transactions come one after the other. On PostgreSQL those that admit share a lock while a limit is far, and
take turns when it is near: near is what all others that the database serves at this moment could use up together.
"""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import connection

from responses_api.database.transaction_locks import Lock, lock_statement, lock_until_commit
from responses_api.errors import Overloaded, RateLimited, RequestTooLarge
from responses_api.models import Response
from responses_api.models.store.response import ACTIVE
from responses_api.selectors.models import live_fleet
from responses_api.services.store.store_admission import refuse_when_jobs_fill_the_store

# Each by an index alone, as every request waits for the first.
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
"""Larger requests always take turns, so that it is known what the others could use up."""
SHARE = 3
"""A key may use so many times what it leaves free to others."""


class LimitIsNear(Exception):
    """Whether there is room can be told only by one that is alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The foreground requests that have not ended, in all and of one key, and how many may be."""

    places: int
    bytes: int
    slots: int
    used: int
    used_bytes: int
    own: int
    own_bytes: int
    is_shared: bool
    """Whether there are keys, so that room is left to others."""

    def refuse(self, size: int, *, ahead: int = 0) -> None:
        """Raise an error when one more request of ``size`` bytes has no room, were ``ahead`` small ones before it."""
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
    """Count what waits and runs, in the transaction that is to insert this row next.

    Raises an :class:`ApiError` when there is no room, and :class:`LimitIsNear` when that can't be told without being
    alone: then the transaction is to be rolled back and begun again.
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
    """The same for a foreground request."""
    if size > settings.RESPONSES_QUEUE_MAX_BYTES:
        raise RequestTooLarge(
            f"The request takes {size} bytes, and all that wait together may take {settings.RESPONSES_QUEUE_MAX_BYTES} "
            "(RESPONSES_QUEUE_MAX_BYTES). Shorten the input.",
            param="input",
        )
    if size > SMALL_BYTES and not is_alone and connection.vendor == "postgresql":
        raise LimitIsNear
    used, used_bytes, own, own_bytes, connections = count_interactive(row.key_id, shared=not is_alone)
    slots = live_fleet().slots
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
    """Requests and bytes in all and of the key, and the connections that the database may have besides."""
    postgresql = connection.vendor == "postgresql"
    statement = COUNT_INTERACTIVE.format(connections=CONNECTIONS if postgresql else "0")
    with connection.cursor() as cursor:
        # In one message, but the count by a snapshot of its own, after the lock.
        cursor.execute(lock_statement(Lock.QUEUE, shared=shared) + statement, [key_id, key_id, *ACTIVE])
        if postgresql:
            cursor.nextset()
        found: tuple[Any, ...] = cursor.fetchone()
        return found


def refuse_job_when_full(*, key_id: int | None) -> None:
    """Raise :class:`RateLimited` when there are so many background jobs that one more may not be."""
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
    """Raise :class:`RateLimited` when the requests that have not ended take the whole store."""
    with connection.cursor() as cursor:
        cursor.execute(SUM_ACTIVE, ACTIVE)
        (octets,) = cursor.fetchone()
    refuse_when_jobs_fill_the_store(active=int(octets), request=request, background=background)
