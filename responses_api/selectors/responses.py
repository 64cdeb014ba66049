"""Stored responses, restricted to those that the caller may see."""

from collections.abc import Iterable
from typing import cast

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from responses_api.caller import Caller
from responses_api.errors import InvalidRequest, NotFound, PreviousResponseNotFound, ResponseInProgress
from responses_api.ids import is_client_id
from responses_api.models import Response, Status
from responses_api.models.store.response import ACTIVE
from responses_api.protocol import ResponseStatus, objects

from .batches import batches
from .history import output_items


def find_response(
    caller: Caller, response_id: str, *, param: str | None = None, with_turn: bool = False
) -> Response | None:
    """The caller's response with this id, running ones included; ``None`` also for an invalid id.

    Raises a 400 where storing is turned off.
    """
    if settings.RESPONSES_STORE_MAX_ENTRIES == 0:
        raise InvalidRequest(
            "This server stores no responses (RESPONSES_STORE_MAX_ENTRIES is 0), so that none can be addressed by its "
            "id. Send the whole history as `input`.",
            param=param,
        )
    if not is_client_id(response_id):
        return None
    unexpired = Q(expires_at=None) | Q(expires_at__gt=Now())
    rows = Response.objects.select_related("turn") if with_turn else Response.objects
    return rows.filter(unexpired, **caller.own, public_id=response_id).first()


def existing_responses(response_ids: Iterable[str]) -> set[str]:
    """Those of these ids that a response has, of whatever owner and in whatever state."""
    found: set[str] = set()
    for batch in batches(sorted(response_ids)):
        found.update(Response.objects.filter(public_id__in=batch).values_list("public_id", flat=True))
    return found


def get_response(*, caller: Caller, response_id: str) -> Response:
    """A stored response, or a background job in any state. Raises a 404, also for an active foreground response."""
    row = find_response(caller, response_id)
    if row is None or (row.is_active and not row.background):
        raise NotFound.response(response_id)
    return row


def get_previous(*, caller: Caller, response_id: str) -> Response:
    """The response that a request continues, with its turn. Raises a 400 or 409 that says why it can't be continued."""
    row = find_response(caller, response_id, param="previous_response_id", with_turn=True)
    if row is None or not row.store:
        raise PreviousResponseNotFound.for_id(response_id)
    if row.status in ACTIVE:
        raise in_progress(row, param="previous_response_id")
    if row.status in (Status.FAILED, Status.CANCELLED):
        raise InvalidRequest(
            f"The previous response '{response_id}' is {row.status} and can't be continued. "
            "Continue the last response that completed.",
            param="previous_response_id",
        )
    return row


def in_progress(row: Response, *, param: str | None = None) -> ResponseInProgress:
    """The error for an operation on an active response. It calls a foreground response in progress even if queued."""
    status = row.status if row.background else Status.IN_PROGRESS.value
    return ResponseInProgress.for_status(row.public_id, status, background=row.background, param=param)


def ended_response(public_id: str) -> objects.Response | None:
    """The object of a stored response, for its reader, whose right to read it was checked; ``None`` without one."""
    row = Response.objects.filter(public_id=public_id).exclude(status__in=ACTIVE).first()
    return None if row is None else wire_response(row)


def wire_response(row: Response) -> objects.Response:
    """The response object as clients see it; an active one has no output yet."""
    body = row.body_dict()
    return {**body, "status": cast("ResponseStatus", row.status), "output": output_items(row.turn_id)}
