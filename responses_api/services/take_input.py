"""What of a request's input has to be looked up before anything is queued: references, and whether blobs are ours."""

from collections.abc import Callable
from typing import Any, TypeVar

from responses_api.caller import Caller
from responses_api.errors import NotFound
from responses_api.protocol import CreateResponse, input_items, references
from responses_api.protocol.compaction import CompactRequest
from responses_api.selectors.items import find_items

from .blobs import check_blobs

Request = TypeVar("Request", CreateResponse, CompactRequest)
LOOKED_UP = frozenset({"item_reference", "compaction"})


def take_input(
    *, caller: Caller, request: Request, payload: dict[str, Any], parse: Callable[[object], Request]
) -> tuple[Request, dict[str, Any]]:
    """The request and its body, every reference replaced by the item that it names: it may be deleted meanwhile.

    ``parse`` reads the body again once it has been changed.

    Raises a 404 for a reference to an item that the caller has not stored, a 400 for a compaction item of others.
    """
    if isinstance(request.input, str) or not any(item.type in LOOKED_UP for item in request.input):
        return request, payload
    items = input_items(request)
    wanted = references(items)
    if wanted:
        found = find_items(caller=caller, wire_ids=[item_id for _, item_id in wanted])
        sent = list(payload["input"])
        for index, item_id in wanted:
            if item_id not in found:
                raise item_not_found(item_id, index)
            sent[index] = found[item_id]
        payload = {**payload, "input": sent}
        request = parse(payload)
        items = input_items(request)
    check_blobs(items, project_id=caller.project.pk)
    return request, payload


def item_not_found(item_id: str, index: int) -> NotFound:
    """One answer for unknown, expired, deleted and another project's."""
    return NotFound(
        f"Item with id '{item_id}' not found. It is unknown, expired or deleted; send the item itself.",
        param=f"input[{index}].id",
    )
