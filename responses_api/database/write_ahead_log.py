"""Empties SQLite's write-ahead log, which contains the text of rows, deleted ones included, until it is truncated."""

import threading

from django.db import connection, transaction

BUSY_MILLISECONDS = 100
"""How long to wait for readers, which delays writers as long. If it is too short, the next try comes soon."""

_has_removed = threading.Event()


def note_removal() -> None:
    """Record that the transaction removes content: after its commit the log has to be emptied."""
    if connection.vendor == "sqlite":
        transaction.on_commit(_has_removed.set)


def empty_write_ahead_log() -> bool:
    """Empty the log if content was removed since the last time; False when a reader prevented it, to be tried again.

    Called often, by a thread that nothing waits for. The server is the only process that uses SQLite.
    """
    if not _has_removed.is_set():
        return True
    # Cleared first: content that is removed meanwhile sets it again.
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
