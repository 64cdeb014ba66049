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

from .end_job import end_unowned
from .remove_jobs import remove_jobs

CANCEL_SECONDS = 5.0
POLL_SECONDS = 0.25


async def cancel_response(*, caller: Caller, response_id: str) -> objects.Response:
    """Cancel a background job, wait a few seconds until its worker has stopped, and return the object as it then is.

    A job that has ended is returned unchanged; one whose worker takes longer is returned as running, to be polled.
    Raises a 404, or a 400 for a response that was not made in the background.
    """
    # Refused before subscribing, since an invalid id is not a valid group.
    await in_database_thread(get_cancellable, caller=caller, response_id=response_id)
    subscription = None
    with suppress(bus.BusUnavailable):  # polling the row finds the end too, only later
        subscription = await bus.subscribe(bus.response_group(response_id))
    try:
        deadline = time.monotonic() + CANCEL_SECONDS
        row = await in_database_thread(request_cancellation, caller=caller, response_id=response_id)
        while row.is_active and (left := deadline - time.monotonic()) > 0:
            await _wait_for_end(subscription, min(POLL_SECONDS, left))
            row = await in_database_thread(get_response, caller=caller, response_id=response_id)
        return await in_database_thread(wire_response, row)
    finally:
        if subscription is not None:
            await subscription.close()


async def _wait_for_end(subscription: bus.Subscription | None, seconds: float) -> None:
    """Wait for the job's last event, at most ``seconds``."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if subscription is None:
            await asyncio.sleep(left)
            return
        message = await subscription.receive(left)
        if isinstance(message, JobEvents) and message.last:
            return


def request_cancellation(*, caller: Caller, response_id: str) -> Response:
    """Cancel a job: at once if no worker owns it, otherwise by asking its worker. Returns the row as it then is."""
    row = get_cancellable(caller=caller, response_id=response_id)
    if row.is_active and not end_unowned(row.pk, outcome="cancelled"):
        active = Response.objects.filter(pk=row.pk, status__in=ACTIVE)
        active.filter(cancel_requested_at=None).update(cancel_requested_at=Now())
        for worker in active.exclude(worker="").values_list("worker", flat=True):
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
    """Stop the job of a foreground response whose reader has left, and store nothing of it.

    A row that no worker has claimed is removed at once. Otherwise its worker gets a message; if that is lost, the
    worker reads the request from the row with its next renewal.
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
