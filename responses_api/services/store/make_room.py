"""Eviction: the least recently used entries are removed until the store is within its limits. Running jobs stay.

It happens in the transaction that stores, so that no other transaction sees the store beyond its limits. Where no limit
is set, no query is made.
"""

from collections.abc import Callable
from dataclasses import dataclass

from django.conf import settings
from django.db import transaction

from responses_api.counting import CONVERSATION_EVICTIONS, STORE_EVICTIONS, count
from responses_api.database.transaction_locks import Lock, lock_until_commit
from responses_api.models import Conversation, Project, Response, Turn
from responses_api.selectors.store_totals import get_store_totals

from .delete_conversation import idle_conversations, remove_conversations
from .delete_response import remove_responses
from .move_conversation import history_bytes, metadata_bytes
from .store_changes import add_up_changes

BATCH = 100
"""Most entries that one step removes because there are too many entries."""
LARGE_BATCH = 10
"""The same because of too many bytes: a few entries mostly suffice, and the size of each has to be read."""
MAX_STEPS = 20
"""Most steps in a transaction that stores; if a limit was lowered much, the sweep removes the rest."""
MANY_CHANGES = 500


@dataclass(frozen=True, slots=True)
class Limit:
    """The most entries and bytes; ``None`` for no limit."""

    entries: int | None
    bytes: int | None

    @property
    def is_set(self) -> bool:
        return self.entries is not None or self.bytes is not None

    def excess(self, entries: int, size: int) -> tuple[int, int]:
        """By how many entries and bytes the limit is exceeded."""
        return (
            0 if self.entries is None else max(0, entries - self.entries),
            0 if self.bytes is None else max(0, size - self.bytes),
        )


def store_limit() -> Limit:
    """The limit on all stored responses."""
    return Limit(settings.RESPONSES_STORE_MAX_ENTRIES, settings.RESPONSES_STORE_MAX_BYTES)


def project_limit() -> Limit:
    """The limit on a project's stored responses. In the settings, 0 means no limit."""
    return Limit(settings.RESPONSES_PROJECT_MAX_ENTRIES or None, settings.RESPONSES_PROJECT_MAX_BYTES or None)


def conversation_limit() -> Limit:
    """The limit on all conversations."""
    return Limit(settings.RESPONSES_CONVERSATION_STORE_MAX_ENTRIES, settings.RESPONSES_CONVERSATION_STORE_MAX_BYTES)


@dataclass(frozen=True, slots=True)
class Evicted:
    """The numbers of evicted entries, to be counted once the transaction is committed."""

    responses: int = 0
    conversations: int = 0

    def count(self) -> None:
        count(STORE_EVICTIONS, self.responses)
        count(CONVERSATION_EVICTIONS, self.conversations)


def make_room_for_responses(project_id: int) -> Evicted:
    """Evict responses in the transaction that has stored one of this project: the project's own first, then anyone's.

    The transaction has recorded its change of the store's size before.
    """
    steps = [
        EvictionOfResponses(limit, project_id=owner).step
        for limit, owner in ((project_limit(), project_id), (store_limit(), None))
        if limit.is_set
    ]
    return Evicted(responses=sum(map(_repeat, steps)))


def make_room_for_conversations() -> Evicted:
    """Evict conversations in the transaction that has created or extended one. Those that a running job continues stay,
    as do those that another transaction is changing.
    """
    return Evicted(conversations=_repeat(evict_conversations) if conversation_limit().is_set else 0)


def _repeat(step: Callable[[], int]) -> int:
    """Call ``step`` until there is nothing more to evict; returns the number of evicted entries."""
    total = 0
    for _ in range(MAX_STEPS):
        evicted = step()
        if not evicted:
            break
        total += evicted
    return total


def make_room(pause: Callable[[], None] = lambda: None) -> None:
    """Bring the whole store within its limits, for example after they were lowered, and add up the recorded changes.

    Each step is a transaction, after which ``pause`` is called.
    """
    if get_store_totals().changes > MANY_CHANGES:
        add_up_changes()
    if project_limit().is_set:
        for project_id in Project.objects.values_list("pk", flat=True):
            while evicted := EvictionOfResponses(project_limit(), project_id=project_id).step():
                Evicted(responses=evicted).count()
                pause()
    if store_limit().is_set:
        while evicted := EvictionOfResponses(store_limit(), project_id=None).step():
            Evicted(responses=evicted).count()
            pause()
    if conversation_limit().is_set:
        while evicted := evict_conversations():
            Evicted(conversations=evicted).count()
            pause()


@dataclass(frozen=True, slots=True)
class EvictionOfResponses:
    """Brings the responses of one project, or of all projects, within a limit."""

    limit: Limit
    project_id: int | None

    def step(self) -> int:
        """Remove some of the least recently used responses if there are too many, but no more than necessary.

        Returns the number of responses removed.
        """
        with transaction.atomic(savepoint=False):
            entries, size = self.limit.excess(*self.size())
            if not (entries or size):
                return 0
            # Running jobs have no ``used_at``.
            oldest = Response.objects.filter(used_at__isnull=False).order_by("used_at", "pk")
            if self.project_id is not None:
                oldest = oldest.filter(project_id=self.project_id)
            rows = oldest.values_list("pk", "size", "turn__history_bytes")[: batch_size(entries, size)]
            # Removing a response frees at most its whole history too.
            candidates = [(pk, own + (history or 0)) for pk, own, history in rows]
            return remove_responses(enough(candidates, entries=entries, size=size))

    def size(self) -> tuple[int, int]:
        """Entries and bytes, which no other transaction changes until this one ends."""
        lock_until_commit(Lock.REMOVAL)
        totals = get_store_totals(self.project_id)
        if totals.changes > MANY_CHANGES:
            add_up_changes()
        return totals.responses, totals.response_bytes


def evict_conversations() -> int:
    """Remove some of the least recently used conversations, if there are too many; returns how many."""
    with transaction.atomic(savepoint=False):
        lock_until_commit(Lock.REMOVAL)
        totals = get_store_totals()
        entries, size = conversation_limit().excess(totals.conversations, totals.conversation_bytes)
        if not (entries or size):
            return 0
        # Locked conversations are in use. Waiting for them could deadlock, as their transactions wait for this one.
        unlocked = Conversation.objects.select_for_update(skip_locked=True)
        oldest = unlocked.filter(pk__in=idle_conversations().values("pk")).order_by("used_at", "pk")
        rows = list(oldest[: batch_size(entries, size)])
        turns = Turn.objects.in_bulk({row.turn_id for row in rows if row.turn_id is not None})
        candidates = [(row.pk, history_bytes(turns.get(row.turn_id)) + metadata_bytes(row)) for row in rows]
        keys = enough(candidates, entries=entries, size=size)
        return remove_conversations(Conversation.objects.filter(pk__in=keys))


def batch_size(entries: int, size: int) -> int:
    """How many candidates to read when this many entries and bytes have to be removed."""
    return min(BATCH, max(entries, LARGE_BATCH if size else 0))


def enough(oldest: list[tuple[int, int]], *, entries: int, size: int) -> list[int]:
    """The fewest of the oldest candidates whose removal can free this many entries and bytes.

    A candidate is a primary key with the most bytes that its removal may free.
    """
    keys: list[int] = []
    for pk, most in oldest:
        if len(keys) >= entries and size <= 0:
            break
        keys.append(pk)
        size -= most
    return keys
