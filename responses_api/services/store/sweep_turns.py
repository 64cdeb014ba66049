"""Removing turns that nothing reaches any more, in the transaction that has removed the last reference to them.

A crash so leaves either the reference or nothing. Concurrent transactions that remove references take turns
(`Lock.REMOVAL`); one that adds a reference meanwhile holds a share of the turn's row lock from the check of its foreign
key on, or finds the turn gone and is refused by the database.
"""

from collections import Counter
from collections.abc import Collection, Iterable

from django.db import connection

from responses_api.database.transaction_locks import Lock, lock_until_commit
from responses_api.database.write_ahead_log import note_removal
from responses_api.selectors.batches import batches

# A turn is doomed when nothing refers to it, or only the one later turn that is doomed itself. Where doomed branches
# meet, the next round continues. Each round at least halves the number of branches, so there are few. Scalar
# subqueries, as in `selectors/history.py`: each is one look into an index.
DOOMED = """
    WITH RECURSIVE doomed(id, parent_id) AS (
        SELECT id, parent_id FROM responses_api_turn turn WHERE id IN ({turns})
            AND (SELECT id FROM responses_api_turn later WHERE later.parent_id = turn.id LIMIT 1) IS NULL
            AND {turn_is_unused}
        UNION ALL
        SELECT parent_id, (SELECT above.parent_id FROM responses_api_turn above WHERE above.id = doomed.parent_id)
        FROM doomed WHERE parent_id IS NOT NULL
            AND (
                SELECT id FROM responses_api_turn later
                WHERE later.parent_id = doomed.parent_id AND later.id <> doomed.id LIMIT 1
            ) IS NULL
            AND {parent_is_unused}
    )
    SELECT id, parent_id FROM doomed
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
    """Remove those of the turns that nothing reaches, the turns before them that this makes unreachable, and the items
    that no turn holds then. Returns the bytes of the items that went, by project.

    Called in the transaction that has removed a reference to each of the turns, as its last step but for figures.
    """
    assert connection.in_atomic_block
    freed: Counter[int] = Counter()
    left = {turn for turn in turns if turn is not None}
    if left:
        lock_until_commit(Lock.REMOVAL)
    while doomed := doomed_turns(left):
        freed += remove_turns(doomed.keys())
        left = {parent for parent in doomed.values() if parent is not None}.difference(doomed)
    return freed


def doomed_turns(turns: Collection[int]) -> dict[int, int | None]:
    """What is to be removed of these turns and those before them, each with its parent; nobody can refer to it now."""
    found = find_doomed(turns)
    if not found or connection.vendor != "postgresql":
        return found
    # Somebody may have referred to one between our look and the lock, and nobody can from now on.
    with connection.cursor() as cursor:
        for some in batches(sorted(found)):
            cursor.execute(LOCK.format(turns=placeholders(some)), some)
    return find_doomed(turns)


def find_doomed(turns: Collection[int]) -> dict[int, int | None]:
    """The same as of now."""
    statement = DOOMED.format(
        turns="{turns}",
        turn_is_unused=UNUSED.format(turn="turn.id"),
        parent_is_unused=UNUSED.format(turn="doomed.parent_id"),
    )
    found: dict[int, int | None] = {}
    with connection.cursor() as cursor:
        for some in batches(sorted(turns)):
            cursor.execute(statement.format(turns=placeholders(some)), some)
            found |= dict(cursor.fetchall())
    return found


def remove_turns(turns: Collection[int]) -> Counter[int]:
    """Remove turns with the items that only they held; the bytes of these, by project."""
    note_removal()
    freed: Counter[int] = Counter()
    items: set[int] = set()
    with connection.cursor() as cursor:
        for some in batches(sorted(turns)):
            cursor.execute(REMOVE_ENTRIES.format(turns=placeholders(some)), some)
            items |= {item for (item,) in cursor.fetchall()}
            cursor.execute(REMOVE_TURNS.format(turns=placeholders(some)), some)
        for some in batches(sorted(items)):
            cursor.execute(REMOVE_ITEMS.format(items=placeholders(some)), some)
            for project, size in cursor.fetchall():
                freed[project] += size
    return freed


def placeholders(values: Collection[int]) -> str:
    """One for each value."""
    return ", ".join(["%s"] * len(values))
