"""Resolves the references in a request's input, and checks its blobs, before anything is queued."""

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import ValidationError

from responses_api.caller import Caller
from responses_api.errors import InvalidValue, NotFound
from responses_api.protocol import CreateResponse, input_items, objects, references
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
    """The request and its body, with every reference replaced by its item, which may be deleted later.

    An item is loaded once, however often it is referenced, and only when there is room: ``refuse`` gets the total bytes
    of all references, and raises if they are too many. ``history`` is the bytes of the stored history that the request
    also reads.

    Raises a 404 for a reference to an item that the caller has not stored, a 400 for another owner's compaction item.
    """
    if isinstance(request.input, str) or not any(item.type in LOOKED_UP for item in request.input):
        assembly.expect(history)
        return request, payload
    items = input_items(request)
    referenced = references(items)
    if referenced:
        stored_items = find_items(caller=caller, wire_ids=[item_id for _, item_id in referenced])
        for index, item_id in referenced:
            if item_id not in stored_items:
                raise item_not_found(item_id, index)
        uses = Counter(item_id for _, item_id in referenced)
        size = sum(stored_items[item_id].size * times for item_id, times in uses.items())
        if refuse is not None:
            refuse(size)
        assembly.expect(history + size)
        assembly.add(size)
        loaded = dict(zip(uses, items_by_key([stored_items[item_id].key for item_id in uses]), strict=True))
        parsed: dict[str, InputItem] = {}
        payload_input, request_input = list(payload["input"]), list(request.input)
        for index, item_id in referenced:
            if item_id not in parsed:
                parsed[item_id] = _parsed(loaded[item_id], index)
            payload_input[index], request_input[index] = loaded[item_id], parsed[item_id]
        payload = {**payload, "input": payload_input}
        request = request.model_copy(update={"input": tuple(request_input)})
        items = input_items(request)
    assembly.expect(history + check_blobs(items, owner=caller.scope))
    return request, payload


def _parsed(item: objects.Item, index: int) -> InputItem:
    try:
        return parse_item(item)
    except ValidationError:
        raise InvalidValue(
            f"The item '{item['id']}' can't be sent as input any more. Send what it says in another form.",
            param=f"input[{index}].id",
        ) from None


def item_not_found(item_id: str, index: int) -> NotFound:
    """The same 404 for an item that is unknown, expired, deleted or another project's."""
    return NotFound(
        f"Item with id '{item_id}' not found. It is unknown, expired or deleted; send the item itself.",
        param=f"input[{index}].id",
    )
