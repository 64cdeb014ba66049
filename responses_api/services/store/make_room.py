"""Eviction: what was used longest ago goes until the store is within its limits again. Running jobs stay.

It happens in the transaction that stores, so that nobody ever sees more in the store than may be. Where no limit is
set, nothing is asked of the database.
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
"""Most entries that go in one step, for their number."""
LARGE_BATCH = 10
"""The same for their bytes: a few of them are mostly enough, and each is looked at."""
STEPS_AT_ONCE = 20
"""Most steps in the transaction of somebody who stores; where a new limit is far below, the sweep removes the rest."""
MANY_CHANGES = 500


@dataclass(frozen=True, slots=True)
class Limit:
    """Most entries and bytes; ``None`` is no limit."""

    entries: int | None
    bytes: int | None

    @property
    def is_set(self) -> bool:
        return self.entries is not None or self.bytes is not None

    def excess(self, entries: int, octets: int) -> tuple[int, int]:
        """How many entries and bytes are too many."""
        return (
            0 if self.entries is None else max(0, entries - self.entries),
            0 if self.bytes is None else max(0, octets - self.bytes),
        )


def store_limit() -> Limit:
    """Of all stored responses."""
    return Limit(settings.RESPONSES_STORE_MAX_ENTRIES, settings.RESPONSES_STORE_MAX_BYTES)


def project_limit() -> Limit:
    """Of a project's stored responses, where 0 is no limit."""
    return Limit(settings.RESPONSES_PROJECT_MAX_ENTRIES or None, settings.RESPONSES_PROJECT_MAX_BYTES or None)


def conversation_limit() -> Limit:
    """Of all conversations."""
    return Limit(settings.RESPONSES_CONVERSATION_STORE_MAX_ENTRIES, settings.RESPONSES_CONVERSATION_STORE_MAX_BYTES)


@dataclass(frozen=True, slots=True)
class Evicted:
    """How many entries went: to be counted once the transaction is committed."""

    responses: int = 0
    conversations: int = 0

    def count(self) -> None:
        count(STORE_EVICTIONS, self.responses)
        count(CONVERSATION_EVICTIONS, self.conversations)


def make_room_for_responses(project_id: int) -> Evicted:
    """Evict responses in the transaction that has stored one of this project: the project's first, then anybody's.

    The change of what is stored is recorded already.
    """
    steps = [
        EvictionOfResponses(limit, project_id=of).step
        for limit, of in ((project_limit(), project_id), (store_limit(), None))
        if limit.is_set
    ]
    return Evicted(responses=sum(map(_repeat, steps)))


def make_room_for_conversations() -> Evicted:
    """Evict conversations in the transaction that has made one or has let it grow. One that a running job continues
    stays, as does one that somebody changes at this moment.
    """
    return Evicted(conversations=_repeat(evict_conversations) if conversation_limit().is_set else 0)


def _repeat(step: Callable[[], int]) -> int:
    """Take steps until there is nothing more to evict; how many entries went."""
    total = 0
    for _ in range(STEPS_AT_ONCE):
        evicted = step()
        if not evicted:
            break
        total += evicted
    return total


def make_room(pause: Callable[[], None] = lambda: None) -> None:
    """Bring the whole store within its limits, as after a start with new ones, and add up what was counted.

    Each step is a transaction of its own; ``pause`` is called after it.
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
    """Brings the responses of a project, or of all, within a limit."""

    limit: Limit
    project_id: int | None

    def step(self) -> int:
        """Remove some of those used longest ago, if there are too many, and never more than have to go. How many."""
        with transaction.atomic(savepoint=False):
            entries, octets = self.limit.excess(*self.size())
            if not (entries or octets):
                return 0
            # Running jobs have no such time.
            oldest = Response.objects.filter(used_at__isnull=False).order_by("used_at", "pk")
            if self.project_id is not None:
                oldest = oldest.filter(project_id=self.project_id)
            found = oldest.values_list("pk", "size", "turn__history_bytes")[: batch_size(entries, octets)]
            # At most its whole history goes with it.
            candidates = [(pk, size + (history or 0)) for pk, size, history in found]
            return remove_responses(enough(candidates, entries=entries, octets=octets))

    def size(self) -> tuple[int, int]:
        """Entries and bytes, which nobody changes until the transaction ends."""
        lock_until_commit(Lock.REMOVAL)
        totals = get_store_totals(self.project_id)
        if totals.changes > MANY_CHANGES:
            add_up_changes()
        return totals.responses, totals.response_bytes


def evict_conversations() -> int:
    """Remove some of the conversations used longest ago, if there are too many. How many."""
    with transaction.atomic(savepoint=False):
        lock_until_commit(Lock.REMOVAL)
        totals = get_store_totals()
        entries, octets = conversation_limit().excess(totals.conversations, totals.conversation_bytes)
        if not (entries or octets):
            return 0
        # Those that are changed at this moment are used. Waiting for them could be for ever, as they wait for us.
        free = Conversation.objects.select_for_update(skip_locked=True)
        oldest = free.filter(pk__in=idle_conversations().values("pk")).order_by("used_at", "pk")
        found = list(oldest[: batch_size(entries, octets)])
        turns = Turn.objects.in_bulk({row.turn_id for row in found if row.turn_id is not None})
        candidates = [(row.pk, history_bytes(turns.get(row.turn_id)) + metadata_bytes(row)) for row in found]
        keys = enough(candidates, entries=entries, octets=octets)
        return remove_conversations(Conversation.objects.filter(pk__in=keys))


def batch_size(entries: int, octets: int) -> int:
    """How many to look at when so many entries and bytes are to go."""
    return min(BATCH, max(entries, LARGE_BATCH if octets else 0))


def enough(oldest: list[tuple[int, int]], *, entries: int, octets: int) -> list[int]:
    """The first of these that have to go at least, for so many entries and bytes to go. Each comes with the most bytes
    that its going may free."""
    keys: list[int] = []
    for pk, most in oldest:
        if len(keys) >= entries and octets <= 0:
            break
        keys.append(pk)
        octets -= most
    return keys
