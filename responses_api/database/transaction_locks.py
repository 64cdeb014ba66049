"""Locks on what has no row of its own, held until the transaction ends.

PostgreSQL's transactions run side by side, so a look and the write that depends on it need a lock around both. SQLite's
begin with the lock of the whole database (`transaction_mode`), and need no other.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import TypeVar

from django.db import OperationalError, connection

T = TypeVar("T")

NAMESPACE = 0x6D6C78
"""The first half of an advisory lock's name: that of this program."""


class Lock(IntEnum):
    """Values are the second half of a lock's name: processes of two versions must agree on them."""

    REMOVAL = 1
    """Taken before a transaction looks for turns that it has made unreachable: two that each remove one of the last two
    references would each see the other's. Rows that are active, and conversations, are locked before it; whoever has it
    waits for no such row. Ended responses are locked after it."""
    QUEUE = 2
    """Held while foreground requests are counted and one more is inserted: shared while there is plenty of room."""
    JOBS = 3
    """The same for background jobs."""
    ACTIVE_BYTES = 4
    """The same for the bytes of all that has not ended, where there is a limit; taken after one of the two before."""


def lock_until_commit(lock: Lock) -> None:
    """Wait for the lock and hold it until the transaction ends. What is read by later statements is true as of then."""
    if statement := lock_statement(lock):
        with connection.cursor() as cursor:
            cursor.execute(statement)


def lock_statement(lock: Lock, *, shared: bool = False) -> str:
    """The statement that does so, to be sent alone or before others; empty where there is no need."""
    if connection.vendor != "postgresql":
        return ""
    assert connection.in_atomic_block
    function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    return f"SELECT {function}({NAMESPACE}, {lock:d});"


DEADLOCK_DETECTED = "40P01"
"""PostgreSQL's error class, https://www.postgresql.org/docs/current/errcodes-appendix.html"""
DEADLOCK_TRIES = 5


def again_when_deadlocked(transact: Callable[[], T]) -> T:
    """What this transaction gives, begun anew when PostgreSQL ends it in favour of another that it stood against.

    For transactions that touch more rows than can be locked in an order agreed with all others.
    """
    for _ in range(DEADLOCK_TRIES - 1):
        try:
            return transact()
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", None) != DEADLOCK_DETECTED:
                raise
    return transact()
