"""How much the event logs of background jobs hold."""

from django.db import connection

# The last batch of each log knows how much came before it. Logs are found by leaping along the index from one job to
# the next, which takes as many steps as there are logs, however long they are.
KEPT = """
    WITH RECURSIVE log(response_id) AS (
        SELECT MIN(response_id) FROM responses_api_eventbatch
        UNION ALL
        SELECT (SELECT MIN(response_id) FROM responses_api_eventbatch batch WHERE batch.response_id > log.response_id)
        FROM log WHERE log.response_id IS NOT NULL
    )
    SELECT COALESCE(SUM(batch.last + 1), 0), COALESCE(SUM(batch.total_bytes), 0)
    FROM log JOIN responses_api_eventbatch batch ON batch.response_id = log.response_id
    WHERE batch.number = (
        SELECT MAX(number) FROM responses_api_eventbatch newest WHERE newest.response_id = log.response_id
    )
"""


def kept_events() -> tuple[int, int]:
    """How many events are kept, and their bytes: of running jobs, and of those that ended not long ago."""
    with connection.cursor() as cursor:
        cursor.execute(KEPT)
        events, size = cursor.fetchone()
    return int(events), int(size)
