"""Removing rows of jobs that have not ended and of which nothing is to be kept."""

from collections import defaultdict

from django.db import transaction
from django.db.models import QuerySet

from responses_api.database.write_ahead_log import note_removal
from responses_api.models import Checkpoint, EventBatch, Response, StoreChange
from responses_api.selectors.batches import batches
from responses_api.services.store.store_changes import record_changes
from responses_api.services.store.sweep_turns import sweep_turns


def remove_jobs(rows: QuerySet[Response]) -> int:
    """Remove these rows, and the histories that nothing else holds any more. Returns how many there were.

    Whoever writes one of them meanwhile comes first or finds it gone.
    """
    with transaction.atomic(savepoint=False):
        found = dict(rows.select_for_update().order_by("pk").values_list("pk", "parent_id"))
        if not found:
            return 0
        note_removal()
        for some in batches(sorted(found)):
            for part in (
                EventBatch.objects.filter(response__in=some),
                Checkpoint.objects.filter(response__in=some),
                Response.objects.filter(pk__in=some),
            ):
                part._raw_delete(part.db)
        changes: defaultdict[int, StoreChange] = defaultdict(StoreChange)
        for project_id, freed in sweep_turns(found.values()).items():
            changes[project_id].response_bytes -= freed
        record_changes(changes)
    return len(found)
