"""The size of the store, by the changes that services have recorded."""

from dataclasses import dataclass

from django.db import connection

SUM = """
    SELECT COUNT(*), COALESCE(SUM(responses), 0), COALESCE(SUM(response_bytes), 0), COALESCE(SUM(conversations), 0),
        COALESCE(SUM(conversation_bytes), 0)
    FROM responses_api_storechange {where}
"""


@dataclass(frozen=True, slots=True)
class StoreTotals:
    """Number and bytes of stored entries, of all projects or of one. Active jobs are not included."""

    changes: int
    """The number of rows that were summed: when there are many, they should be added up."""
    responses: int
    response_bytes: int
    conversations: int
    conversation_bytes: int


def get_store_totals(project_id: int | None = None) -> StoreTotals:
    """The totals of a project; of all projects without ``project_id``."""
    with connection.cursor() as cursor:
        if project_id is None:
            cursor.execute(SUM.format(where=""))
        else:
            cursor.execute(SUM.format(where="WHERE project_id = %s"), [project_id])
        return StoreTotals(*map(int, cursor.fetchone()))
