"""Removes the rows of jobs that have not ended and are not stored."""

from collections import defaultdict

from django.db import transaction
from django.db.models import QuerySet

from responses_api.database.write_ahead_log import note_removal
from responses_api.models import Checkpoint, EventBatch, Response, StoreChange
from responses_api.selectors.batches import batches
from responses_api.services.store.store_changes import record_changes
from responses_api.services.store.sweep_turns import sweep_turns


def remove_jobs(rows: QuerySet[Response]) -> int:
    """Remove these rows, and the histories that nothing else refers to. Returns the number of rows removed.

    A concurrent writer of one of them either commits before, or finds the row removed.
    """
    with transaction.atomic(savepoint=False):
        parents = dict(rows.select_for_update().order_by("pk").values_list("pk", "parent_id"))
        if not parents:
            return 0
        note_removal()
        for batch in batches(sorted(parents)):
            for table_rows in (
                EventBatch.objects.filter(response__in=batch),
                Checkpoint.objects.filter(response__in=batch),
                Response.objects.filter(pk__in=batch),
            ):
                table_rows._raw_delete(table_rows.db)
        changes: defaultdict[int, StoreChange] = defaultdict(StoreChange)
        for project_id, freed in sweep_turns(parents.values()).items():
            changes[project_id].response_bytes -= freed
        record_changes(changes)

    return len(parents)
