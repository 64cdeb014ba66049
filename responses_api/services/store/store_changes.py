"""Records changes of the store's size."""

from collections import defaultdict
from collections.abc import Mapping

from django.db import connection, transaction

from responses_api.models import StoreChange

TAKE = """
    DELETE FROM responses_api_storechange WHERE id IN (
        SELECT id FROM responses_api_storechange ORDER BY id LIMIT %s {lock}
    )
    RETURNING project_id, responses, response_bytes, conversations, conversation_bytes
"""
BATCH = 10_000


def record_change(change: StoreChange) -> None:
    """Record the change that a transaction has made, as its last step, unless all figures are 0."""
    if not change.is_nothing:
        change.save(force_insert=True)


def record_changes(changes: Mapping[int, StoreChange]) -> None:
    """Record the changes of several projects, by their primary keys."""
    for project_id, change in changes.items():
        change.project_id = project_id
    StoreChange.objects.bulk_create(change for change in changes.values() if not change.is_nothing)


def add_up_changes() -> None:
    """Replace many rows by one per project. Safe to run anywhere, any time, by several at once."""
    lock = "FOR UPDATE SKIP LOCKED" if connection.vendor == "postgresql" else ""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(TAKE.format(lock=lock), [BATCH])
            rows = cursor.fetchall()
        sums: defaultdict[int, StoreChange] = defaultdict(StoreChange)
        for project_id, responses, response_bytes, conversations, conversation_bytes in rows:
            total = sums[project_id]
            total.responses += responses
            total.response_bytes += response_bytes
            total.conversations += conversations
            total.conversation_bytes += conversation_bytes
        record_changes(sums)
