"""Deletes stored responses with the items that only they refer to."""

from collections import defaultdict
from collections.abc import Collection

from django.db import connection, transaction

from responses_api import bus
from responses_api.bus.messages import ForgetResponses
from responses_api.caller import Caller
from responses_api.database.transaction_locks import Lock, lock_until_commit
from responses_api.database.write_ahead_log import note_removal
from responses_api.errors import NotFound
from responses_api.models import StoreChange
from responses_api.selectors.batches import batches
from responses_api.selectors.models import get_live_workers
from responses_api.selectors.responses import find_response, in_progress

from .store_changes import record_changes
from .sweep_turns import placeholders, sweep_turns

REMOVE_RESPONSES = """
    DELETE FROM responses_api_response WHERE id IN ({keys}) AND status NOT IN ('queued', 'in_progress')
    RETURNING id, project_id, size, turn_id
"""
REMOVE_EVENTS = "DELETE FROM responses_api_eventbatch WHERE response_id IN ({keys})"
REMOVE_CHECKPOINTS = "DELETE FROM responses_api_checkpoint WHERE response_id IN ({keys})"


def delete_response(*, caller: Caller, response_id: str) -> None:
    """Delete a stored response, with what workers have cached of it alone. Responses that continue it keep their
    history.
    """
    row = find_response(caller, response_id)
    if row is None:
        raise NotFound.response(response_id)
    if row.is_active:
        raise in_progress(row)
    remove_responses([row.pk])
    for worker, _ in get_live_workers().workers:
        bus.publish(bus.process_group(worker), ForgetResponses(responses=(row.public_id,)))


def remove_responses(keys: Collection[int]) -> int:
    """Remove ended responses by their primary keys, with their event logs and the items that only they refer to.

    Returns the number of responses removed. In one transaction, so that a crash leaves all or nothing; the number of
    statements is the same for one response as for hundreds.
    """
    removed = 0
    with transaction.atomic(savepoint=False):
        lock_until_commit(Lock.REMOVAL)
        note_removal()
        changes: defaultdict[int, StoreChange] = defaultdict(StoreChange)
        turns: set[int | None] = set()
        with connection.cursor() as cursor:
            for batch in batches(sorted(keys)):
                cursor.execute(REMOVE_RESPONSES.format(keys=placeholders(batch)), batch)
                rows = cursor.fetchall()
                if not rows:
                    continue
                ids = [pk for pk, *_ in rows]
                cursor.execute(REMOVE_EVENTS.format(keys=placeholders(ids)), ids)
                cursor.execute(REMOVE_CHECKPOINTS.format(keys=placeholders(ids)), ids)
                for _, project_id, size, turn_id in rows:
                    changes[project_id].responses -= 1
                    changes[project_id].response_bytes -= size
                    turns.add(turn_id)
                removed += len(rows)
        for project_id, freed in sweep_turns(turns).items():
            changes[project_id].response_bytes -= freed
        record_changes(changes)
    return removed
