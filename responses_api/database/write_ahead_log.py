"""SQLite's write-ahead log, which holds the text of rows until it is begun anew, also of those that were deleted."""

import threading

from django.db import connection, transaction

BUSY_MILLISECONDS = 100
"""How long readers are waited for, and writers have to wait. The next try comes soon."""

_has_removed = threading.Event()


def note_removal() -> None:
    """The transaction removes content: after its commit the log is to be emptied."""
    if connection.vendor == "sqlite":
        transaction.on_commit(_has_removed.set)


def empty_write_ahead_log() -> bool:
    """Empty the log if content was removed since; False when a reader kept it from that, and it is to be tried again.

    Called soon and often, by a thread that nobody waits for. The server is SQLite's only process.
    """
    if not _has_removed.is_set():
        return True
    # Before: what is removed meanwhile wants another look.
    _has_removed.clear()
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        (before,) = cursor.fetchone()
        cursor.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS:d}")
        try:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            is_busy = bool(cursor.fetchone()[0])
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {before:d}")
    if is_busy:
        _has_removed.set()
    return not is_busy
