"""How running jobs stand, for those who wait on them."""

from collections.abc import Collection
from enum import Enum

from django.db.models import BooleanField, Case, Q, Value, When
from django.db.models.functions import Now

from responses_api.models import Response
from responses_api.models.store.response import ACTIVE


class Standing(Enum):
    """A job as a waiting reader sees it."""

    ALIVE = "alive"
    """Waiting for a worker, or held by one."""
    EXPIRED = "expired"
    """Its worker has not renewed its lease: it is lost."""
    ENDED = "ended"
    """Finished, or gone."""


def standings(public_ids: Collection[str]) -> dict[str, Standing]:
    """The standing of each of these jobs, by one query."""
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
    result = {}
    for public_id in public_ids:
        alive = active.get(public_id)
        result[public_id] = Standing.ENDED if alive is None else Standing.ALIVE if alive else Standing.EXPIRED
    return result
