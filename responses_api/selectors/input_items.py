"""``GET /responses/{id}/input_items``."""

from collections.abc import Sequence
from typing import Any

import orjson

from responses_api.errors import InvalidValue
from responses_api.models import Response
from responses_api.protocol import ListQuery, list_envelope, parse_create, sent_items

from .history import history_items, input_entries, items_by_key


def list_input_items(row: Response, *, query: ListQuery) -> dict[str, Any]:
    """One page of a response's whole input history, without its own output."""
    if row.is_active:
        items = running_input(row)
        kept, has_more = one_page(range(len(items)), [item["id"] for item in items], query)
        return list_envelope([items[position] for position in kept], has_more=has_more)
    entries = input_entries(row.turn_id)
    kept, has_more = one_page([entry.item for entry in entries], [entry.wire_id for entry in entries], query)
    return list_envelope(items_by_key(kept), has_more=has_more)


def running_input(row: Response) -> list[dict[str, Any]]:
    """The input of a job that has not ended, under the ids that it will be stored with."""
    history = history_items(row.parent_id)
    request = parse_create(orjson.loads(row.request))
    return [*history, *sent_items(request, response_id=row.public_id, history=history)]


def one_page(keys: Sequence[int], wire_ids: Sequence[str], query: ListQuery) -> tuple[list[int], bool]:
    """The keys of one page, of all from the oldest on, and whether there are more behind it."""
    places = list(zip(keys, wire_ids, strict=True))
    if query.order == "desc":
        places.reverse()
    if query.after is not None:
        places = places[position_after([wire_id for _, wire_id in places], query.after) :]
    page = places[: query.limit]
    return [key for key, _ in page], len(places) > len(page)


def position_after(wire_ids: Sequence[str], after: str) -> int:
    """Where the page begins that follows the item ``after``."""
    for position, wire_id in enumerate(wire_ids):
        if wire_id == after:
            return position + 1
    raise InvalidValue(
        f"`after` names the item '{after}', which is not in this list. Send the `last_id` of the page before.",
        param="after",
    )
