"""The size of the event logs of background jobs."""

from django.db import connection

# The last batch of each log has the totals of the log. Logs are found by a skip scan of the index, which takes one step
# per log, whatever its length.
STORED = """
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


def stored_events() -> tuple[int, int]:
    """The number of stored events and their bytes: of running jobs, and of those whose log has not expired."""
    with connection.cursor() as cursor:
        cursor.execute(STORED)
        events, size = cursor.fetchone()
    return int(events), int(size)
