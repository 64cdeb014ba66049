"""Writes turns on top of a history, from new items or by reference to stored ones.

The bytes of new items are added to the transaction's `StoreChange`, which the owner of the transaction records.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, cast

from responses_api.ids import new_id
from responses_api.models import StoreChange, Turn, TurnItem
from responses_api.protocol import objects
from responses_api.protocol.items.input import item_prefix
from responses_api.selectors.conversations import Place
from responses_api.selectors.history import used_ids

from .insert_items import NewEntry, insert_entries, insert_items, new_item

Payloads = Sequence[tuple[objects.Item, bool]]
"""Items in wire form, each with whether it was generated."""


def write_turn(*, parent: Turn | None, payloads: Payloads, change: StoreChange) -> Turn:
    """Write a turn of new items on top of ``parent``."""
    items = [new_item(payload) for payload, _ in payloads]
    change.response_bytes += sum(item.size for item in items)
    keys = insert_items(items, project_id=change.project_id)
    return refer_turn(
        project_id=change.project_id,
        parent=parent,
        entries=[(key, item.size, is_output) for key, item, (_, is_output) in zip(keys, items, payloads, strict=True)],
    )


def refer_turn(*, project_id: int, parent: Turn | None, entries: Sequence[tuple[int, int, bool]]) -> Turn:
    """Write a turn that refers to stored items, each with its bytes and whether it was generated."""
    turn = add_turn(project_id=project_id, parent=parent, size=sum(size for _, size, _ in entries))
    insert_entries(
        [NewEntry(turn.pk, item, position, is_output) for position, (item, _, is_output) in enumerate(entries)]
    )
    return turn


def add_turn(*, project_id: int, parent: Turn | None, size: int) -> Turn:
    """Write a turn of ``size`` bytes, still without its items."""
    if parent is None:
        return Turn.objects.create(project_id=project_id, depth=0, history_bytes=size)
    return Turn.objects.create(
        project_id=project_id, parent=parent, depth=parent.depth + 1, history_bytes=parent.history_bytes + size
    )


def refer_turns(*, project_id: int, parent: Turn | None, places: Iterable[Place]) -> Turn | None:
    """Write copies of the turns of ``places`` on top of ``parent``, with these places only; returns the last copy."""
    entries: list[NewEntry] = []
    for _, group in groupby(places, key=attrgetter("turn")):
        turn_places = list(group)
        parent = add_turn(project_id=project_id, parent=parent, size=sum(place.size for place in turn_places))
        entries += (
            NewEntry(parent.pk, place.item, position, place.is_output) for position, place in enumerate(turn_places)
        )
    insert_entries(entries)
    return parent


def repeat_turn(turn: Turn, *, parent: Turn | None, change: StoreChange) -> Turn:
    """Write a turn with the items of ``turn`` on top of another history.

    It refers to the same item rows. An item whose id is used in that history is copied under a new id, since ids are
    unique within a history.
    """
    places = TurnItem.objects.filter(turn=turn).select_related("item").order_by("position")
    entries = [(entry.item, entry.is_output) for entry in places]
    used = used_ids(None if parent is None else parent.pk, [item.wire_id for item, _ in entries])
    copies = {
        place: new_item(with_new_id(item.wire())) for place, (item, _) in enumerate(entries) if item.wire_id in used
    }
    change.response_bytes += sum(copy.size for copy in copies.values())
    keys = dict(zip(copies, insert_items(list(copies.values()), project_id=turn.project_id), strict=True))
    repeated = [
        (keys[place], copies[place].size, is_output) if place in copies else (item.pk, item.size, is_output)
        for place, (item, is_output) in enumerate(entries)
    ]
    return refer_turn(project_id=turn.project_id, parent=parent, entries=repeated)


def with_free_ids(payloads: Sequence[tuple[Mapping[str, Any], bool]], *, parent: Turn | None) -> Payloads:
    """The items, with a new id where an item has none, or one that ``parent``'s history or an earlier item uses."""
    ids = [payload["id"] for payload, _ in payloads if "id" in payload]
    used = used_ids(None if parent is None else parent.pk, ids)
    result = []
    for payload, is_output in payloads:
        is_free = payload.get("id") is not None and payload["id"] not in used
        item = cast("objects.Item", payload) if is_free else with_new_id(payload)
        used.add(item["id"])
        result.append((item, is_output))
    return result


def with_new_id(payload: Mapping[str, Any]) -> objects.Item:
    """The item with a new id."""
    others = {key: value for key, value in payload.items() if key != "id"}
    return cast("objects.Item", {"id": new_id(item_prefix(payload["type"])), **others})
