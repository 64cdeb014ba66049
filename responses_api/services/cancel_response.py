"""Cancelling a job wherever it is."""

from django.db import transaction
from django.db.models.functions import Now

from responses_api import bus
from responses_api.models import Response, Status
from responses_api.models.response import ACTIVE

from .delete_response import sweep_turn


def abandon_response(*, public_id: str) -> None:
    """The reader of a foreground response has left: stop the job and leave nothing of it.

    A row that nobody has claimed goes at once; else its worker is told, and looks at the row with its next renewal
    should the message be lost.
    """
    with transaction.atomic():
        row = (
            Response.objects.select_for_update()
            .filter(public_id=public_id, background=False, status__in=ACTIVE)
            .only("pk", "status", "worker", "parent_id")
            .first()
        )
        if row is None:
            return
        waiting = row.status == Status.QUEUED and not row.worker
        if waiting:
            Response.objects.filter(pk=row.pk).delete()
        else:
            Response.objects.filter(pk=row.pk).update(cancel_requested_at=Now())
    if waiting:
        sweep_turn(row.parent_id)
        return
    bus.publish(bus.process_group(row.worker), {"type": "process.cancel", "response": row.pk})
