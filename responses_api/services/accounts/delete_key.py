"""Deletes revoked keys."""

from collections.abc import Iterable

from django.db import connection

from responses_api.models import ApiKey

from .forget_owner import forget_owners

BATCH = 500
# In batches, so that no worker waits long for a row. Rows that are locked are skipped: deleting the key updates them.
CLEAR = """
    UPDATE {table} SET key_id = NULL WHERE id IN (
        SELECT id FROM {table} WHERE key_id = %s LIMIT %s {lock}
    )
"""
TABLES = ("responses_api_response", "responses_api_conversation", "responses_api_usagerecord")


def delete_keys(*, keys: Iterable[ApiKey]) -> int:
    """Delete the revoked ones among these keys; returns how many. Their usage records stay.

    Keys that are not revoked are left alone. References to a key are cleared in batches before it is deleted.
    """
    revoked = ApiKey.objects.filter(pk__in=[key.pk for key in keys], revoked_at__isnull=False)
    owners = list(revoked.values_list("project_id", "pk"))
    for _, key_id in owners:
        for table in TABLES:
            while clear_key(table, key_id) == BATCH:
                pass
    # Few references are left: those of rows that were locked.
    removed = revoked.delete()[1].get(ApiKey._meta.label, 0)
    for project_id, key_id in owners:
        forget_owners(project_id=project_id, key_ids=[key_id], whole=False)
    return removed


def clear_key(table: str, key_id: int) -> int:
    """Clear the references of up to ``BATCH`` rows to a key; returns how many were cleared."""
    lock = "FOR UPDATE SKIP LOCKED" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(CLEAR.format(table=table, lock=lock), [key_id, BATCH])
        return int(cursor.rowcount)
