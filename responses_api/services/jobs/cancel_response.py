"""Cancelling a job wherever it is."""

import asyncio
import time
from contextlib import suppress

from django.db import transaction
from django.db.models.functions import Now

from responses_api import bus
from responses_api.bus.messages import CancelRow, JobEvents
from responses_api.caller import Caller
from responses_api.database.threads import in_database_thread
from responses_api.errors import InvalidRequest, NotFound
from responses_api.models import Response, Status
from responses_api.models.store.response import ACTIVE
from responses_api.protocol import objects
from responses_api.selectors.responses import find_response, get_response, wire_response

from .end_job import end_unheld
from .remove_jobs import remove_jobs

CANCEL_SECONDS = 5.0
LOOK_SECONDS = 0.25


async def cancel_response(*, caller: Caller, response_id: str) -> objects.Response:
    """Cancel a background job, and wait a while until no worker holds it; the object as it then is.

    One that has ended is answered as it is. One whose worker takes longer is answered as it runs, to be polled. Raises
    a 404, or a 400 for a response that was not made in the background.
    """
    # What can't be cancelled isn't listened for.
    await in_database_thread(get_cancellable, caller=caller, response_id=response_id)
    subscription = None
    with suppress(bus.BusUnavailable):  # the row tells too, only later
        subscription = await bus.subscribe(bus.response_group(response_id))
    try:
        deadline = time.monotonic() + CANCEL_SECONDS
        row = await in_database_thread(request_cancellation, caller=caller, response_id=response_id)
        while row.is_active and (left := deadline - time.monotonic()) > 0:
            await _something(subscription, min(LOOK_SECONDS, left))
            row = await in_database_thread(get_response, caller=caller, response_id=response_id)
        return await in_database_thread(wire_response, row)
    finally:
        if subscription is not None:
            await subscription.close()


async def _something(subscription: bus.Subscription | None, seconds: float) -> None:
    """Wait for the job's last event, for so long at most."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if subscription is None:
            await asyncio.sleep(left)
            return
        message = await subscription.receive(left)
        if isinstance(message, JobEvents) and message.last:
            return


def request_cancellation(*, caller: Caller, response_id: str) -> Response:
    """Have a job cancelled: at once where no worker holds it, else by its worker. The row as it then is."""
    row = get_cancellable(caller=caller, response_id=response_id)
    if row.is_active and not end_unheld(row.pk, outcome="cancelled"):
        held = Response.objects.filter(pk=row.pk, status__in=ACTIVE)
        held.filter(cancel_requested_at=None).update(cancel_requested_at=Now())
        for worker in held.exclude(worker="").values_list("worker", flat=True):
            bus.publish(bus.process_group(worker), CancelRow(row=row.pk))
    return get_response(caller=caller, response_id=response_id)


def get_cancellable(*, caller: Caller, response_id: str) -> Response:
    """The background job with this id, ended or not. Raises a 404, or a 400 for a response of the foreground."""
    row = find_response(caller, response_id)
    if row is None:
        raise NotFound.response(response_id)
    if not row.background:
        raise InvalidRequest(
            f"Response '{response_id}' was not made in the background, and only background responses can be cancelled. "
            "Close the connection of a running one."
        )
    return row


def abandon_response(*, public_id: str) -> None:
    """The reader of a foreground response has left: stop the job and leave nothing of it.

    A row that nobody has claimed goes at once; else its worker is told, and looks at the row with its next renewal
    should the message be lost.
    """
    with transaction.atomic():
        row = (
            Response.objects.select_for_update()
            .filter(public_id=public_id, background=False, status__in=ACTIVE)
            .only("pk", "status", "worker")
            .first()
        )
        if row is None:
            return
        waiting = row.status == Status.QUEUED and not row.worker
        if waiting:
            remove_jobs(Response.objects.filter(pk=row.pk))
            return
        Response.objects.filter(pk=row.pk).update(cancel_requested_at=Now())
    bus.publish(bus.process_group(row.worker), CancelRow(row=row.pk))
