"""The states of jobs, for the readers that wait for them."""

from collections.abc import Collection
from enum import Enum

from django.db.models import BooleanField, Case, Q, Value, When
from django.db.models.functions import Now

from responses_api.models import Response
from responses_api.models.store.response import ACTIVE


class JobState(Enum):
    """The state of a job for a reader that waits for it."""

    ALIVE = "alive"
    """Waiting for a worker, or owned by one."""
    EXPIRED = "expired"
    """Lost: its worker has not renewed the lease."""
    ENDED = "ended"
    """Finished or removed."""


def job_states(public_ids: Collection[str]) -> dict[str, JobState]:
    """The state of each of these jobs, by one query."""
    rows = (
        Response.objects.filter(public_id__in=public_ids, status__in=ACTIVE)
        .annotate(
            alive=Case(
                When(Q(worker="") | Q(lease_until__gte=Now()), then=Value(True)),
                default=Value(False),
                output_field=BooleanField(),
            )
        )
        .values_list("public_id", "alive")
    )
    active = dict(rows)
    states = {}
    for public_id in public_ids:
        alive = active.get(public_id)
        states[public_id] = JobState.ENDED if alive is None else JobState.ALIVE if alive else JobState.EXPIRED
    return states
