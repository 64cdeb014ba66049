"""Leases on work that one process of the whole deployment does at a time. Another one takes over when it dies."""

from datetime import timedelta

from django.db.models import Q
from django.db.models.functions import Now

from responses_api.models import Chore

CHORE_SECONDS = 30
"""Duration of a lease on a chore, much longer than any step of it takes."""


def take_chore(name: str, *, holder: str) -> bool:
    """Take a free chore, or renew the lease of one that ``holder`` has; returns whether ``holder`` has it now."""
    until = Now() + timedelta(seconds=CHORE_SECONDS)
    if Chore.objects.filter(Q(holder=holder) | Q(until__lte=Now()), name=name).update(holder=holder, until=until):
        return True
    if Chore.objects.filter(name=name).exists():
        return False
    # Two processes may both find that there is no row yet: the second insert is ignored.
    Chore.objects.bulk_create([Chore(name=name, holder=holder, until=until)], ignore_conflicts=True)
    return Chore.objects.filter(name=name, holder=holder).exists()


def release_chore(name: str, *, holder: str) -> None:
    """Let other processes take the chore."""
    Chore.objects.filter(name=name, holder=holder).update(until=Now())
