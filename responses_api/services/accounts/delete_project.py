"""Deletes a project with everything that belongs to it."""

from dataclasses import dataclass

from django.db import transaction

from responses_api import bus
from responses_api.bus.messages import CancelRow
from responses_api.database.transaction_locks import again_when_deadlocked
from responses_api.database.write_ahead_log import note_removal
from responses_api.models import (
    ApiKey,
    Checkpoint,
    Conversation,
    EventBatch,
    Item,
    Project,
    Response,
    StoreChange,
    Turn,
    TurnItem,
    UsageRecord,
)
from responses_api.models.store.response import ACTIVE

from .forget_owner import forget_owners


def delete_project(*, project: Project) -> None:
    """Delete a project with everything that belongs to it, all or nothing, in a fixed number of queries.

    Its running jobs are cancelled; whatever their workers write afterwards fails, since the rows are removed.
    """
    removed = again_when_deadlocked(lambda: _remove(project))
    for pk, worker in removed.running:
        bus.publish(bus.process_group(worker), CancelRow(row=pk))
    forget_owners(project_id=project.pk, key_ids=removed.key_ids)


@dataclass(frozen=True, slots=True)
class _Removed:
    running: list[tuple[int, str]]
    """Running responses, by their primary keys, and the workers that own them."""
    key_ids: list[int]


def _remove(project: Project) -> _Removed:
    with transaction.atomic():
        # An insert into the project needs a shared lock on this row, so nothing is added during the deletion.
        if Project.objects.select_for_update().filter(pk=project.pk).first() is None:
            return _Removed([], [])
        responses = Response.objects.filter(project=project)
        key_ids = list(ApiKey.objects.filter(project=project).values_list("pk", flat=True))
        running = list(responses.filter(status__in=ACTIVE).exclude(worker="").values_list("pk", "worker"))
        note_removal()
        # Rows of these tables refer to each other; the database checks foreign keys at the end of the transaction.
        for rows in (
            UsageRecord.objects.filter(project=project),
            StoreChange.objects.filter(project=project),
            EventBatch.objects.filter(response__project=project),
            Checkpoint.objects.filter(response__project=project),
            responses,
            Conversation.objects.filter(project=project),
            TurnItem.objects.filter(turn__project=project),
            Turn.objects.filter(project=project),
            Item.objects.filter(project=project),
            ApiKey.objects.filter(project=project),
        ):
            rows._raw_delete(rows.db)
        Project.objects.filter(pk=project.pk).delete()
    return _Removed(running, key_ids)
