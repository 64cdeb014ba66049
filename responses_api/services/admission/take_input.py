"""What of a request's input has to be looked up before anything is queued: references, and whether blobs are ours."""

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import ValidationError

from responses_api.caller import Caller
from responses_api.errors import InvalidValue, NotFound
from responses_api.protocol import CreateResponse, input_items, references
from responses_api.protocol.items.input import InputItem, parse_item
from responses_api.protocol.requests.compact import CompactRequest
from responses_api.selectors.history import items_by_key
from responses_api.selectors.items import find_items
from responses_api.services.prompts.assemble_history import Assembly
from responses_api.services.prompts.blobs import check_blobs

Request = TypeVar("Request", CreateResponse, CompactRequest)
LOOKED_UP = frozenset({"item_reference", "compaction", "reasoning"})


def take_input(
    *,
    caller: Caller,
    request: Request,
    payload: dict[str, Any],
    assembly: Assembly,
    history: int = 0,
    refuse: Callable[[int], None] | None = None,
) -> tuple[Request, dict[str, Any]]:
    """The request and its body, every reference replaced by the item that it names: it may be deleted meanwhile.

    An item is loaded once, however often it is named, and not before it is known that there is room: ``refuse`` is
    told of the bytes that all references come to, and raises where they are too many. ``history`` is the bytes of the
    stored history that will be read on top.

    Raises a 404 for a reference to an item that the caller has not stored, a 400 for a compaction item of others.
    """
    if isinstance(request.input, str) or not any(item.type in LOOKED_UP for item in request.input):
        assembly.expect(history)
        return request, payload
    items = input_items(request)
    wanted = references(items)
    if wanted:
        found = find_items(caller=caller, wire_ids=[item_id for _, item_id in wanted])
        for index, item_id in wanted:
            if item_id not in found:
                raise item_not_found(item_id, index)
        uses = Counter(item_id for _, item_id in wanted)
        size = sum(found[item_id].size * times for item_id, times in uses.items())
        if refuse is not None:
            refuse(size)
        assembly.expect(history + size)
        assembly.add(size)
        stored = dict(zip(uses, items_by_key([found[item_id].key for item_id in uses]), strict=True))
        parsed: dict[str, InputItem] = {}
        sent, taken = list(payload["input"]), list(request.input)
        for index, item_id in wanted:
            if item_id not in parsed:
                parsed[item_id] = _parsed(stored[item_id], index)
            sent[index], taken[index] = stored[item_id], parsed[item_id]
        payload = {**payload, "input": sent}
        request = request.model_copy(update={"input": tuple(taken)})
        items = input_items(request)
    assembly.expect(history + check_blobs(items, owner=caller.scope))
    return request, payload


def _parsed(item: dict[str, Any], index: int) -> InputItem:
    try:
        return parse_item(item)
    except ValidationError:
        raise InvalidValue(
            f"The item '{item['id']}' can't be sent as input any more. Send what it says in another form.",
            param=f"input[{index}].id",
        ) from None


def item_not_found(item_id: str, index: int) -> NotFound:
    """One answer for unknown, expired, deleted and another project's."""
    return NotFound(
        f"Item with id '{item_id}' not found. It is unknown, expired or deleted; send the item itself.",
        param=f"input[{index}].id",
    )
