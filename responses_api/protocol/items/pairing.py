"""How the items of a request refer to others: outputs to their calls, references to stored items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from responses_api.errors import InvalidValue
from responses_api.protocol.json.values import describe, shorten

WireItems = Iterable[Mapping[str, Any]]

TOOL_PAIRS: Mapping[str, str] = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
_CALLS = {output: call for call, output in TOOL_PAIRS.items()}


def references(items: WireItems) -> list[tuple[int, str]]:
    """The places and ids of the `item_reference`s among items in wire form."""
    return [(index, item["id"]) for index, item in enumerate(items) if item["type"] == "item_reference"]


def check_tool_pairs(history: WireItems, items: WireItems) -> None:
    """Check that every output has its call and every call its output, by `call_id`, in any order, over all items.

    Raises InvalidValue (400, `param: "input"`) that names the first call without its pair. References must have been
    resolved. A call that was cut off (status `incomplete`) needs no output, since nobody could run it.
    """
    calls: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    outputs: Counter[tuple[str, str]] = Counter()
    for item in (*history, *items):
        kind = item["type"]
        if kind in TOOL_PAIRS:
            calls.setdefault((kind, item["call_id"]), []).append(item)
        elif kind in _CALLS:
            outputs[_CALLS[kind], item["call_id"]] += 1
    for (kind, call_id), count in outputs.items():
        if count > len(calls.get((kind, call_id), ())):
            raise _no_call(kind, call_id, known=(kind, call_id) in calls)
    for (kind, call_id), same_id in calls.items():
        completed = [call for call in same_id if call["status"] != "incomplete"]
        if outputs[kind, call_id] < len(completed):
            raise _no_output(kind, call_id, str(completed[-1]["name"]))


def _no_call(kind: str, call_id: str, *, known: bool) -> InvalidValue:
    output = TOOL_PAIRS[kind]
    if known:
        message = (
            f"There are more `{output}` items than `{kind}` items with call_id '{shorten(call_id)}'. Send one each."
        )
    else:
        message = (
            f"There is no `{kind}` with call_id '{shorten(call_id)}' for the `{output}` that names it. Send the call "
            "too, or continue the response that made it by `previous_response_id`."
        )
    return InvalidValue(message, param="input")


def _no_output(kind: str, call_id: str, name: str) -> InvalidValue:
    message = (
        f"There is no `{TOOL_PAIRS[kind]}` for the `{kind}` of {describe(name)} with call_id '{shorten(call_id)}'. "
        "Send what the tool returned."
    )
    return InvalidValue(message, param="input")
