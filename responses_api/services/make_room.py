"""Eviction: what was used longest ago goes until the store is within its limits again. Running jobs stay.

Where no limit is set, nothing is asked of the database. A limit counts what is stored; several may make room at once
without removing more than has to go.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from django.conf import settings
from django.db.models import QuerySet

from responses_api.counting import STORE_EVICTIONS, count
from responses_api.models import Project, Response
from responses_api.selectors.store_totals import get_store_totals

from .delete_conversation import idle_conversations, remove_conversation
from .delete_response import remove_response
from .store_changes import add_up_changes

BATCH = 100
MANY_CHANGES = 500


@dataclass(frozen=True, slots=True)
class Limit:
    """Most entries and bytes; ``None`` is no limit."""

    entries: int | None
    bytes: int | None

    @property
    def is_set(self) -> bool:
        return self.entries is not None or self.bytes is not None


class Remove(Protocol):
    """Removes one entry; returns the bytes freed, ``None`` when it was not there any more."""

    def __call__(self, pk: int, /) -> int | None: ...


def store_limit() -> Limit:
    """Of all stored responses."""
    return Limit(settings.RESPONSES_STORE_MAX_ENTRIES, settings.RESPONSES_STORE_MAX_BYTES)


def project_limit() -> Limit:
    """Of a project's stored responses, where 0 is no limit."""
    return Limit(settings.RESPONSES_PROJECT_MAX_ENTRIES or None, settings.RESPONSES_PROJECT_MAX_BYTES or None)


def conversation_limit() -> Limit:
    """Of all conversations."""
    return Limit(settings.RESPONSES_CONVERSATION_STORE_MAX_ENTRIES, settings.RESPONSES_CONVERSATION_STORE_MAX_BYTES)


def make_room_for_responses(project_id: int) -> int:
    """Evict responses after one of this project has been stored: the project's first, then anybody's."""
    return _evict_responses(project_id, project_limit()) + _evict_responses(None, store_limit())


def make_room_for_conversations() -> int:
    """Evict conversations after one has been made or has grown. One that a running job continues stays."""
    limit = conversation_limit()
    if not limit.is_set:
        return 0
    oldest = idle_conversations().order_by("used_at", "pk")

    def size() -> tuple[int, int]:
        totals = get_store_totals()
        return totals.conversations, totals.conversation_bytes

    return _evict(limit, size=size, oldest=oldest, remove=lambda pk: remove_conversation(pk, among=oldest))


def make_room(pause: Callable[[], None] = lambda: None) -> None:
    """Bring the whole store within its limits, as after a start with new ones, and add up what was counted.

    ``pause`` is called between the projects.
    """
    if get_store_totals().changes > MANY_CHANGES:
        add_up_changes()
    if project_limit().is_set:
        for project_id in Project.objects.values_list("pk", flat=True):
            _evict_responses(project_id, project_limit())
            pause()
    _evict_responses(None, store_limit())
    make_room_for_conversations()


def _evict_responses(project_id: int | None, limit: Limit) -> int:
    if not limit.is_set:
        return 0
    # Running jobs have no such time.
    oldest = Response.objects.filter(used_at__isnull=False).order_by("used_at", "pk")
    if project_id is not None:
        oldest = oldest.filter(project_id=project_id)

    def size() -> tuple[int, int]:
        totals = get_store_totals(project_id)
        if totals.changes > MANY_CHANGES:
            add_up_changes()
        return totals.responses, totals.response_bytes

    evicted = _evict(limit, size=size, oldest=oldest, remove=remove_response)
    count(STORE_EVICTIONS, evicted)
    return evicted


def _evict(limit: Limit, *, size: Callable[[], tuple[int, int]], oldest: QuerySet[Any], remove: Remove) -> int:
    """Remove entries, oldest first, until ``size`` is within ``limit``. Returns how many."""
    total = 0
    while _is_over(limit, *size()):
        keys = list(oldest.values_list("pk", flat=True)[:BATCH])
        # Measured after the look at the oldest: what others remove meanwhile is among these, so no more goes for it.
        evicted = _evict_some(limit, *size(), keys=keys, remove=remove)
        total += evicted
        if not evicted:
            # Nothing can go, or somebody else is at it.
            break
    return total


def _evict_some(limit: Limit, entries: int, octets: int, *, keys: Iterable[int], remove: Remove) -> int:
    evicted = 0
    for pk in keys:
        if not _is_over(limit, entries, octets):
            break
        freed = remove(pk)
        if freed is None:
            # Somebody else makes room too: look again.
            break
        evicted += 1
        entries -= 1
        octets -= freed
    return evicted


def _is_over(limit: Limit, entries: int, octets: int) -> bool:
    return (limit.entries is not None and entries > limit.entries) or (limit.bytes is not None and octets > limit.bytes)
