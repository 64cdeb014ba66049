"""Removing revoked keys from the list."""

from collections.abc import Iterable

from django.db import connection

from responses_api.models import ApiKey

from .forget_owner import forget_owners

BATCH = 500
# Some at a time, so that no worker waits long for a row; a row that is written at this moment has its turn later.
FORGET = """
    UPDATE {table} SET key_id = NULL WHERE id IN (
        SELECT id FROM {table} WHERE key_id = %s LIMIT %s {lock}
    )
"""
TABLES = ("responses_api_response", "responses_api_conversation", "responses_api_usagerecord")


def delete_keys(*, keys: Iterable[ApiKey]) -> int:
    """Delete those of the keys that are revoked; returns how many. Usage that they account for stays.

    A key that still opens something is left alone: revoking it is the step that says so. What a key has made loses it
    in batches, before the key goes.
    """
    revoked = ApiKey.objects.filter(pk__in=[key.pk for key in keys], revoked_at__isnull=False)
    owners = list(revoked.values_list("project_id", "pk"))
    for _, key_id in owners:
        for table in TABLES:
            while forget_key(table, key_id) == BATCH:
                pass
    # Few rows are left to it: those that others were writing.
    removed = revoked.delete()[1].get(ApiKey._meta.label, 0)
    for project_id, key_id in owners:
        forget_owners(project_id=project_id, key_ids=[key_id], whole=False)
    return removed


def forget_key(table: str, key_id: int) -> int:
    """Take the key from some rows; returns from how many."""
    lock = "FOR UPDATE SKIP LOCKED" if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(FORGET.format(table=table, lock=lock), [key_id, BATCH])
        return int(cursor.rowcount)
