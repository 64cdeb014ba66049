"""Locks on what has no row of its own, held until the transaction ends.

PostgreSQL's transactions run side by side, so a look and the write that depends on it need a lock around both. SQLite's
begin with the lock of the whole database (`transaction_mode`), and need no other.
"""

from enum import IntEnum

from django.db import connection

NAMESPACE = 0x6D6C78
"""The first half of an advisory lock's name: that of this program."""


class Lock(IntEnum):
    """Values are the second half of a lock's name: processes of two versions must agree on them."""

    REMOVAL = 1
    """Taken before a transaction looks for turns that it has made unreachable: two that each remove one of the last two
    references would each see the other's. Rows that are active, and conversations, are locked before it; whoever has it
    waits for no such row. Ended responses are locked after it."""


def lock_until_commit(lock: Lock, *, shared: bool = False) -> None:
    """Wait for the lock and hold it until the transaction ends. What is read by later statements is true as of then."""
    if connection.vendor != "postgresql":
        return
    assert connection.in_atomic_block
    function = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s, %s)", [NAMESPACE, lock])
