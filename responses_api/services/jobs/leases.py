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


MAX_LOSSES = 3
"""A job that so many workers in a row have begun and lost, without a new token that was kept, fails."""

# One statement, and for interactive requests no more than it needs, since each waits for it. What a worker needs of a
# row comes back with the claim.
# The rows are chosen once: as a subquery, another plan may choose again for every row, and take more than the limit.
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

# Projects take turns: a project's n-th waiting row comes before another's (n+1)-th, and what it has running counts as
# gone before. The rows are locked in a query without a window, as PostgreSQL wants it, and looked at again there: they
# may have been claimed between the two looks.
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

    Of interactive ones, projects take turns and of each its keys, the oldest first. Of background jobs, those of the
    project that has least running, and of a project's the oldest.
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
    """Let a background job go, for another worker to go on with it; False when it was not held any more.

    With a ``pause`` nobody claims it for as long as a lease holds.
    """
    until = Now() + lease_seconds() if pause else None
    # What was begun for nothing was not lost.
    fewer = Case(When(losses__gt=0, then=F("losses") - 1), default=F("losses"), output_field=IntegerField())
    return bool(lease.rows().update(worker="", lease_until=until, losses=fewer if begun else F("losses")))


def release_as_lost(lease: Lease) -> bool:
    """The same for a job that went wrong here; False also when that has happened too often."""
    return bool(lease.rows().filter(losses__lt=MAX_LOSSES).update(worker="", lease_until=None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What a renewal tells of the rows that a worker still holds."""

    attempts: dict[int, int]
    """Row to attempt: of those asked for, what is missing here has been lost."""
    cancel_requested: frozenset[int]


def renew_leases(*, worker: str, rows: Collection[int]) -> Held:
    """Extend the leases of ``worker`` on ``rows``; report which of these it holds, and which are to be cancelled.

    What the worker has a lease on without knowing of it runs out: a claim whose answer never came, an end that could
    not be stored. A row that somebody else has locked is passed over until the next renewal: to wait for it would be to
    lose the leases on all.
    """
    if not rows:
        return Held(attempts={}, cancel_requested=frozenset())
    held = Response.objects.filter(worker=worker, pk__in=rows, status__in=ACTIVE)
    with transaction.atomic():
        free = held.select_for_update(no_key=True, skip_locked=True).values_list("pk", flat=True)
        Response.objects.filter(pk__in=list(free)).update(lease_until=Now() + lease_seconds())
    found = list(held.values_list("pk", "attempt", "cancel_requested_at"))
    return Held(
        attempts={pk: attempt for pk, attempt, _ in found},
        cancel_requested=frozenset(pk for pk, _, cancelled in found if cancelled is not None),
    )


def overdue_rows(rows: QuerySet[Response]) -> list[int]:
    """Those of the rows that were admitted longer ago than their kind may take, by the database's clock."""
    late = Q()
    for background, seconds in (
        (False, settings.RESPONSES_FOREGROUND_TIMEOUT_SECONDS),
        (True, settings.RESPONSES_BACKGROUND_TIMEOUT_SECONDS),
    ):
        if seconds:
            late |= Q(background=background, created_at__lt=Now() - timedelta(seconds=seconds))
    return list(rows.filter(late).values_list("pk", flat=True)) if late else []
