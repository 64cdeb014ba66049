"""Leases on work that one process of the whole deployment does at a time. Any other takes over when that one dies."""

from datetime import timedelta

from django.db.models import Q
from django.db.models.functions import Now

from responses_api.models import Chore

CHORE_SECONDS = 30
"""A lease on a chore, much longer than any step of it takes."""


def take_chore(name: str, *, holder: str) -> bool:
    """Take a chore that nobody does, or keep one that is held; says whether ``holder`` has it now."""
    until = Now() + timedelta(seconds=CHORE_SECONDS)
    if Chore.objects.filter(Q(holder=holder) | Q(until__lte=Now()), name=name).update(holder=holder, until=until):
        return True
    if Chore.objects.filter(name=name).exists():
        return False
    # Two processes may find that there is no row yet: the second one's is ignored.
    Chore.objects.bulk_create([Chore(name=name, holder=holder, until=until)], ignore_conflicts=True)
    return Chore.objects.filter(name=name, holder=holder).exists()


def release_chore(name: str, *, holder: str) -> None:
    """Let others have it."""
    Chore.objects.filter(name=name, holder=holder).update(until=Now())
