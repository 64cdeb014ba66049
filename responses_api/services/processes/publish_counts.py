"""Adds the counts of this process to those of all processes."""

from django.db import connection, transaction

from responses_api.counting import give_back, take_counts

ADD = """
    INSERT INTO responses_api_counter (name, value) VALUES (%s, %s)
    ON CONFLICT (name) DO UPDATE SET value = responses_api_counter.value + excluded.value
"""


def publish_counts() -> None:
    """Add this process's counts to the database. If that fails, nothing is lost: the next call adds them.

    Called with every heartbeat and whenever the figures are read, so that a crash loses at most the counts since the
    last heartbeat.
    """
    counts = take_counts()
    if not counts:
        return
    try:
        # Sorted, since other processes update the same rows and could deadlock otherwise.
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.executemany(ADD, sorted(counts.items()))
    except BaseException:
        give_back(counts)
        raise
