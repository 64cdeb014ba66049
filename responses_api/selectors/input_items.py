"""``GET /responses/{id}/input_items``."""

from typing import Any

from responses_api.caller import Caller
from responses_api.errors import InvalidValue
from responses_api.protocol import ListQuery, list_envelope

from .history import Entry, input_entries, items_by_key
from .responses import get_response


def list_input_items(*, caller: Caller, response_id: str, query: ListQuery) -> dict[str, Any]:
    """One page of a response's whole input history, without its own output."""
    row = get_response(caller=caller, response_id=response_id)
    entries = input_entries(row.turn_id)
    if query.order == "desc":
        entries.reverse()
    if query.after is not None:
        entries = entries[position_after(entries, query.after) :]
    page = entries[: query.limit]
    return list_envelope(items_by_key([entry.item for entry in page]), has_more=len(entries) > len(page))


def position_after(entries: list[Entry], after: str) -> int:
    """Where the page begins that follows the item ``after``."""
    for position, entry in enumerate(entries):
        if entry.wire_id == after:
            return position + 1
    raise InvalidValue(
        f"`after` names the item '{after}', which is not in this list. Send the `last_id` of the page before.",
        param="after",
    )
