"""Locks on things without a row, held until the transaction ends.

PostgreSQL's transactions are concurrent, so a read and the write that depends on it need a common lock. SQLite's
transactions lock the whole database (`transaction_mode`), and need no other lock.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import TypeVar

from django.db import OperationalError, connection

T = TypeVar("T")

NAMESPACE = 0x6D6C78
"""The first half of an advisory lock's key, which identifies this program."""


class Lock(IntEnum):
    """Values are the second half of a lock's key: processes of different versions must agree on them."""

    REMOVAL = 1
    """Taken before a transaction looks for turns that it has made unreachable: two transactions that each remove one of
    the last two references would each see the other's. Active rows and conversations are locked before it, ended
    responses after it; a transaction that has it doesn't wait for the former."""
    QUEUE = 2
    """Held while foreground requests are counted and one is inserted: shared while there is plenty of room."""
    JOBS = 3
    """Held while background jobs are counted and one is inserted."""
    ACTIVE_BYTES = 4
    """Held while the bytes of active requests are summed and one is inserted, if they are limited; taken after
    ``QUEUE`` or ``JOBS``."""


def lock_until_commit(lock: Lock) -> None:
    """Wait for the lock and hold it until the transaction ends. Later statements see what was committed before."""
    if statement := lock_statement(lock):
        with connection.cursor() as cursor:
            cursor.execute(statement)


def lock_statement(lock: Lock, *, shared: bool = False) -> str:
    """The SQL statement that takes the lock; empty for SQLite, which needs none."""
    if connection.vendor != "postgresql":
        return ""
    assert connection.in_atomic_block
    function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    return f"SELECT {function}({NAMESPACE}, {lock:d});"


DEADLOCK_DETECTED = "40P01"
"""PostgreSQL's error class, https://www.postgresql.org/docs/current/errcodes-appendix.html"""
DEADLOCK_TRIES = 5


def again_when_deadlocked(transact: Callable[[], T]) -> T:
    """Run a transaction, and again when PostgreSQL aborts it because of a deadlock; returns its result.

    For transactions that lock more rows than can be locked in an order that all transactions share.
    """
    for _ in range(DEADLOCK_TRIES - 1):
        try:
            return transact()
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", None) != DEADLOCK_DETECTED:
                raise
    return transact()
