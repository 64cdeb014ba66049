"""Claims on queued rows. A claim is a lease by the database's clock and an attempt number that fences late writers."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Case, F, IntegerField, Q, QuerySet, When
from django.db.models.functions import Now

from responses_api.models import Response
from responses_api.models.store.response import ACTIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A worker's claim on a row: valid until another process claims the row."""

    response: int
    public_id: str
    worker: str
    attempt: int

    def rows(self) -> QuerySet[Response]:
        """The row, if this lease is still valid; empty when another attempt owns the row or it has ended."""
        return Response.objects.filter(pk=self.response, worker=self.worker, attempt=self.attempt, status__in=ACTIVE)


def lease_seconds() -> timedelta:
    """How long a claim is valid without a renewal."""
    return timedelta(seconds=settings.RESPONSES_LEASE_SECONDS)


MAX_LOST_ATTEMPTS = 3
"""A job fails after this many lost attempts in a row, none of which persisted a new token."""

# A single statement, since every interactive request waits for it. It returns the columns that a worker needs.
# MATERIALIZED selects the rows once: a plain subquery may be evaluated again for every row, and exceed the limit.
CLAIM = """
    WITH candidate(id) AS MATERIALIZED ({candidates} LIMIT %s {lock})
    UPDATE responses_api_response
    SET worker = %s, attempt = attempt + 1, lease_until = {lease_until}
    WHERE id IN (SELECT id FROM candidate)
    RETURNING id, public_id, project_id, key_id, model, priority, background, stream, parent_id, request, body,
        created_at, worker, attempt, losses, cancel_requested_at, {now} AS claimed_at
"""

# Projects take turns, and so do the keys of each: a project's n-th waiting row comes before another's (n+1)-th.
INTERACTIVE = """
    SELECT job.id FROM responses_api_response job JOIN (
        SELECT own.id, ROW_NUMBER() OVER (PARTITION BY own.project_id ORDER BY own.number, own.id) AS number FROM (
            SELECT id, project_id, ROW_NUMBER() OVER (PARTITION BY project_id, key_id ORDER BY id) AS number
            FROM responses_api_response
            WHERE status = 'queued' AND worker = '' AND priority = 0 AND model IN ({models})
        ) own
    ) turn ON turn.id = job.id
    WHERE job.worker = '' AND job.status = 'queued'
    ORDER BY turn.number, job.id
"""

# Projects take turns: a project's n-th waiting row comes before another's (n+1)-th, and its running jobs count as
# earlier ones. PostgreSQL can't lock rows in a query with a window function; the outer query locks them, and checks
# again that they were not claimed meanwhile.
BACKGROUND = """
    SELECT job.id FROM responses_api_response job JOIN (
        SELECT waiting.id, COALESCE(held.rows, 0)
            + ROW_NUMBER() OVER (PARTITION BY waiting.project_id ORDER BY waiting.id) AS number
        FROM responses_api_response waiting LEFT JOIN (
            SELECT project_id, COUNT(*) AS rows FROM responses_api_response
            WHERE status IN ('queued', 'in_progress') AND worker <> '' AND priority = 1 GROUP BY project_id
        ) held ON held.project_id = waiting.project_id
        WHERE waiting.status IN ('queued', 'in_progress') AND waiting.worker = '' AND waiting.priority = 1
            AND waiting.model IN ({models}) AND (waiting.lease_until IS NULL OR waiting.lease_until < {now})
    ) turn ON turn.id = job.id
    WHERE job.worker = '' AND job.status IN ('queued', 'in_progress')
    ORDER BY turn.number, job.id
"""


def claim_responses(*, worker: str, models: Sequence[str], limit: int, background: bool = False) -> list[Response]:
    """Claim up to ``limit`` waiting rows of these models, either interactive or background ones.

    Interactive rows: projects take turns, and so do the keys of each; the oldest come first. Background jobs: those of
    the project with the fewest running jobs come first, the oldest of a project before its others.
    """
    if not models:
        return []
    postgresql = connection.vendor == "postgresql"
    candidates = BACKGROUND if background else INTERACTIVE
    now = "STATEMENT_TIMESTAMP()" if postgresql else "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW')"
    statement = CLAIM.format(
        now=now,
        candidates=candidates.format(models=", ".join(["%s"] * len(models)), now=now),
        lease_until=(
            "STATEMENT_TIMESTAMP() + make_interval(secs => %s)"
            if postgresql
            else "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW', %s || ' seconds')"
        ),
        lock="FOR UPDATE OF job SKIP LOCKED" if postgresql else "",
    )
    rows = Response.objects.raw(statement, [*models, limit, worker, settings.RESPONSES_LEASE_SECONDS])
    return sorted(rows, key=lambda row: row.pk)


def release_lease(lease: Lease, *, begun: bool = True, pause: bool = False) -> bool:
    """Release a background job, for another worker to resume; False when the lease was lost.

    With a ``pause`` no worker claims it for the duration of a lease.
    """
    until = Now() + lease_seconds() if pause else None
    # A released job is not a lost attempt: take back the count that it got when it began.
    reduced = Case(
        When(lost_attempts__gt=0, then=F("lost_attempts") - 1), default=F("lost_attempts"), output_field=IntegerField()
    )
    return bool(
        lease.rows().update(worker="", lease_until=until, lost_attempts=reduced if begun else F("lost_attempts"))
    )


def release_as_lost(lease: Lease) -> bool:
    """Release a background job as a lost attempt; False when the lease was lost or there were ``MAX_LOST_ATTEMPTS``."""
    return bool(lease.rows().filter(lost_attempts__lt=MAX_LOST_ATTEMPTS).update(worker="", lease_until=None))


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewedLeases:
    """The rows that a worker still owns after a renewal."""

    attempts: dict[int, int]
    """Row to attempt. The lease of a row that was to be renewed and is missing here was lost."""
    cancel_requested: frozenset[int]


def renew_leases(*, worker: str, rows: Collection[int]) -> RenewedLeases:
    """Extend the leases of ``worker`` on ``rows``; report which of these it owns, and which are to be cancelled.

    Leases that the worker doesn't know of expire: a claim whose result was lost, an end that could not be stored. A row
    that another transaction has locked is skipped until the next renewal, since waiting for it could lose all leases.
    """
    if not rows:
        return RenewedLeases(attempts={}, cancel_requested=frozenset())
    owned = Response.objects.filter(worker=worker, pk__in=rows, status__in=ACTIVE)
    with transaction.atomic():
        unlocked = owned.select_for_update(no_key=True, skip_locked=True).values_list("pk", flat=True)
        Response.objects.filter(pk__in=list(unlocked)).update(lease_until=Now() + lease_seconds())
    leases = list(owned.values_list("pk", "attempt", "cancel_requested_at"))
    return RenewedLeases(
        attempts={pk: attempt for pk, attempt, _ in leases},
        cancel_requested=frozenset(pk for pk, _, cancelled in leases if cancelled is not None),
    )


def overdue_rows(rows: QuerySet[Response]) -> list[int]:
    """The rows that have exceeded the timeout of their kind since admission, by the database's clock."""
    late = Q()
    for background, seconds in (
        (False, settings.RESPONSES_FOREGROUND_TIMEOUT_SECONDS),
        (True, settings.RESPONSES_BACKGROUND_TIMEOUT_SECONDS),
    ):
        if seconds:
            late |= Q(background=background, created_at__lt=Now() - timedelta(seconds=seconds))
    return list(rows.filter(late).values_list("pk", flat=True)) if late else []
