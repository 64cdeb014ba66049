"""Claims on queued rows. A claim is a lease by the database's clock and an attempt number that fences late writers."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from responses_api.models import Response
from responses_api.models.response import ACTIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A worker's hold on a row: valid as long as nobody else has claimed the row since."""

    response: int
    public_id: str
    worker: str
    attempt: int

    def rows(self) -> QuerySet[Response]:
        """The row, if this lease still holds; empty when another attempt has it or it has ended."""
        return Response.objects.filter(pk=self.response, worker=self.worker, attempt=self.attempt, status__in=ACTIVE)


def lease_seconds() -> timedelta:
    """How long a claim holds without a renewal."""
    return timedelta(seconds=settings.RESPONSES_LEASE_SECONDS)


# One statement, since every request waits for it. What a worker needs of a row comes back with the claim.
CLAIM = """
    UPDATE responses_api_response
    SET worker = %s, attempt = attempt + 1, lease_until = {lease_until}
    WHERE id IN (
        SELECT id FROM responses_api_response
        WHERE status = 'queued' AND worker = '' AND model IN ({models})
        ORDER BY priority, id LIMIT %s {lock}
    )
    RETURNING id, public_id, project_id, key_id, model, priority, stream, parent_id, request, body, created_at, worker,
        attempt
"""


def claim_responses(*, worker: str, models: Sequence[str], limit: int) -> list[Response]:
    """Claim up to ``limit`` waiting rows of these models, interactive before background, oldest first."""
    if not models:
        return []
    postgresql = connection.vendor == "postgresql"
    statement = CLAIM.format(
        lease_until=(
            "STATEMENT_TIMESTAMP() + make_interval(secs => %s)"
            if postgresql
            else "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW', %s || ' seconds')"
        ),
        models=", ".join(["%s"] * len(models)),
        lock="FOR UPDATE SKIP LOCKED" if postgresql else "",
    )
    rows = Response.objects.raw(statement, [worker, settings.RESPONSES_LEASE_SECONDS, *models, limit])
    return sorted(rows, key=lambda row: (row.priority, row.pk))


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a renewal tells of the rows that a worker still holds."""

    attempts: dict[int, int]
    """Row to attempt: of those asked for, what is missing here has been lost."""
    cancel_requested: frozenset[int]


def renew_leases(*, worker: str, rows: Collection[int]) -> Held:
    """Extend the leases of ``worker`` on ``rows``; report which of these it holds, and which are to be cancelled.

    What the worker has a lease on without knowing of it runs out: a claim whose answer never came, an end that could
    not be stored.
    """
    held = Response.objects.filter(worker=worker, pk__in=rows, status__in=ACTIVE)
    held.update(lease_until=Now() + lease_seconds())
    found = list(held.values_list("pk", "attempt", "cancel_requested_at"))
    return Held(
        attempts={pk: attempt for pk, attempt, _ in found},
        cancel_requested=frozenset(pk for pk, _, cancelled in found if cancelled is not None),
    )
