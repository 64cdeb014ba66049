"""Adding what this process has counted to what all have."""

from django.db import connection, transaction

from responses_api.counting import give_back, take_counts

ADD = """
    INSERT INTO responses_api_counter (name, value) VALUES (%s, %s)
    ON CONFLICT (name) DO UPDATE SET value = responses_api_counter.value + excluded.value
"""


def publish_counts() -> None:
    """Add them up in the database; nothing is lost when that fails, and it is done with the next call.

    Every heartbeat and every reading of the figures does it, so what a crashed process had counted since its last
    heartbeat is all that is ever missing.
    """
    counts = take_counts()
    if not counts:
        return
    try:
        # In one order, since others add to the same rows meanwhile.
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.executemany(ADD, sorted(counts.items()))
    except BaseException:
        give_back(counts)
        raise
