"""Removes unreachable turns, in the transaction that has removed the last reference to them.

A crash leaves either the reference or nothing. Concurrent transactions that remove references are serialised
(`Lock.REMOVAL`). One that adds a reference has a shared lock on the turn's row once its foreign key is checked, or
finds the turn removed and fails.
"""

from collections import Counter
from collections.abc import Collection, Iterable

from django.db import connection

from responses_api.database.transaction_locks import Lock, lock_until_commit
from responses_api.database.write_ahead_log import note_removal
from responses_api.selectors.batches import batches

# A turn is unreachable when nothing refers to it, or only one later turn that is unreachable itself. Where unreachable
# branches meet, the next round continues. Each round at least halves the number of branches, so there are few rounds.
# Scalar subqueries, as in `selectors/history.py`: each is one index look-up.
UNREACHABLE = """
    WITH RECURSIVE unreachable(id, parent_id) AS (
        SELECT id, parent_id FROM responses_api_turn turn WHERE id IN ({turns})
            AND (SELECT id FROM responses_api_turn later WHERE later.parent_id = turn.id LIMIT 1) IS NULL
            AND {turn_is_unused}
        UNION ALL
        SELECT parent_id, (SELECT above.parent_id FROM responses_api_turn above WHERE above.id = unreachable.parent_id)
        FROM unreachable WHERE parent_id IS NOT NULL
            AND (
                SELECT id FROM responses_api_turn later
                WHERE later.parent_id = unreachable.parent_id AND later.id <> unreachable.id LIMIT 1
            ) IS NULL
            AND {parent_is_unused}
    )
    SELECT id, parent_id FROM unreachable
"""
UNUSED = """
    (SELECT id FROM responses_api_response own WHERE own.turn_id = {turn} LIMIT 1) IS NULL
    AND (SELECT id FROM responses_api_response running WHERE running.parent_id = {turn} LIMIT 1) IS NULL
    AND (SELECT id FROM responses_api_conversation tip WHERE tip.turn_id = {turn} LIMIT 1) IS NULL
"""
LOCK = "SELECT id FROM responses_api_turn WHERE id IN ({turns}) ORDER BY id FOR UPDATE"
REMOVE_ENTRIES = "DELETE FROM responses_api_turnitem WHERE turn_id IN ({turns}) RETURNING item_id"
REMOVE_TURNS = "DELETE FROM responses_api_turn WHERE id IN ({turns})"
REMOVE_ITEMS = """
    DELETE FROM responses_api_item WHERE id IN ({items})
    AND NOT EXISTS (SELECT 1 FROM responses_api_turnitem entry WHERE entry.item_id = responses_api_item.id)
    RETURNING project_id, size
"""


def sweep_turns(turns: Iterable[int | None]) -> Counter[int]:
    """Remove the unreachable ones among these turns, the ancestors that this makes unreachable, and the items that then
    belong to no turn. Returns the bytes of the removed items, by project.

    Called in the transaction that has removed a reference to each of the turns, as its last step except for
    :func:`record_change`.
    """
    assert connection.in_atomic_block
    freed: Counter[int] = Counter()
    candidates = {turn for turn in turns if turn is not None}
    if candidates:
        lock_until_commit(Lock.REMOVAL)
    while unreachable := lock_unreachable_turns(candidates):
        freed += remove_turns(unreachable.keys())
        candidates = {parent for parent in unreachable.values() if parent is not None}.difference(unreachable)
    return freed


def lock_unreachable_turns(turns: Collection[int]) -> dict[int, int | None]:
    """The unreachable ones among these turns and their ancestors, with their parents, locked against new references."""
    unreachable = find_unreachable_turns(turns)
    if not unreachable or connection.vendor != "postgresql":
        return unreachable
    # Another transaction may have added a reference between the query and the lock: query again.
    with connection.cursor() as cursor:
        for batch in batches(sorted(unreachable)):
            cursor.execute(LOCK.format(turns=placeholders(batch)), batch)
    return find_unreachable_turns(turns)


def find_unreachable_turns(turns: Collection[int]) -> dict[int, int | None]:
    """The unreachable ones among these turns and their ancestors, each with its parent."""
    statement = UNREACHABLE.format(
        turns="{turns}",
        turn_is_unused=UNUSED.format(turn="turn.id"),
        parent_is_unused=UNUSED.format(turn="unreachable.parent_id"),
    )
    unreachable: dict[int, int | None] = {}
    with connection.cursor() as cursor:
        for batch in batches(sorted(turns)):
            cursor.execute(statement.format(turns=placeholders(batch)), batch)
            unreachable |= dict(cursor.fetchall())
    return unreachable


def remove_turns(turns: Collection[int]) -> Counter[int]:
    """Remove turns with the items that only they refer to; returns the bytes of these items, by project."""
    note_removal()
    freed: Counter[int] = Counter()
    items: set[int] = set()
    with connection.cursor() as cursor:
        for batch in batches(sorted(turns)):
            cursor.execute(REMOVE_ENTRIES.format(turns=placeholders(batch)), batch)
            items |= {item for (item,) in cursor.fetchall()}
            cursor.execute(REMOVE_TURNS.format(turns=placeholders(batch)), batch)
        for batch in batches(sorted(items)):
            cursor.execute(REMOVE_ITEMS.format(items=placeholders(batch)), batch)
            for project, size in cursor.fetchall():
                freed[project] += size
    return freed


def placeholders(values: Collection[int]) -> str:
    """SQL placeholders, one for each value."""
    return ", ".join(["%s"] * len(values))
