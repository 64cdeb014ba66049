"""Checks for every stream: OpenAI's types, OpenAI's accumulator, and the grammar of events."""

import re
from collections.abc import Mapping
from typing import Any, get_args

from openai import omit
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from responses_api.protocol.objects import StreamEvent
from tests.protocol.references import open_responses_errors

Events = list[Any]
"""Events as JSON values: a test looks at the fields of any."""

# Events that Open Responses types differently from our builder; docs/compatibility.md lists them.
UNLIKE_OPEN_RESPONSES = {"error", "response.compaction.compacting"}

# Fields that the SDK doesn't type: Open Responses' own; `bytes`, which the SDK types only in the part; and the status,
# which it types only for listed calls of custom tools.
EXTRA = {
    "Response": {"store", "presence_penalty", "frequency_penalty"},
    "Logprob": {"bytes"},
    "LogprobTopLogprob": {"bytes"},
    "ResponseCustomToolCall": {"status"},
}

STREAM_EVENT: TypeAdapter[Any] = TypeAdapter(StreamEvent)

_union = get_args(ResponseStreamEvent)[0]
EVENT_TYPES: dict[str, type[BaseModel]] = {
    get_args(cls.model_fields["type"].annotation)[0]: cls for cls in get_args(_union)
}

LETTERS = {
    "response.created": "c",
    "response.queued": "q",
    "response.in_progress": "p",
    "response.output_item.added": "i",
    "response.content_part.added": "a",
    "response.output_text.delta": "d",
    "response.output_text.done": "t",
    "response.content_part.done": "b",
    "response.output_item.done": "o",
    "response.completed": "C",
    "response.incomplete": "I",
    "response.failed": "F",
    "error": "e",
    "response.compaction.compacting": "k",
    "mlx.compaction.started": "m",
    "mlx.compaction.completed": "n",
    "response.reasoning_text.delta": "r",
    "response.reasoning_text.done": "s",
    "response.function_call_arguments.delta": "f",
    "response.function_call_arguments.done": "g",
    "response.custom_tool_call_input.delta": "u",
    "response.custom_tool_call_input.done": "v",
}

GRAMMAR = re.compile(r"cq(eF|e)|cq?p((mn)?iko)?(i(ad*tb|ar+sb|f+g|f*|u*v?)o)*(C|I|eF|e)")
CONTENT = {
    "message": re.compile(r"iad*tbo"),
    "reasoning": re.compile(r"iar+sbo"),
    "function_call": re.compile(r"if+go"),
    "custom_tool_call": re.compile(r"iu*vo"),
    "compaction": re.compile(r"iko"),
}
"""The events of an item."""
CUT_CONTENT = CONTENT | {"function_call": re.compile(r"if*o"), "custom_tool_call": re.compile(r"iu*o")}
OURS = {"mlx.compaction.started", "mlx.compaction.completed"}
"""Extensions that neither OpenAI's SDK nor Open Responses types."""


def parse(events: Events) -> list[Any]:
    """The events as the SDK's objects, validated strictly: no missing and no extra fields."""
    known = [event for event in events if event["type"] not in OURS]
    parsed = [EVENT_TYPES[event["type"]].model_validate(event, strict=True) for event in known]
    for event in parsed:
        check_fields(event)
    return parsed


def check_own_types(events: Events) -> None:
    """Our types have each event, with every field. Not for events that the SDK has read: it makes times floats."""
    assert [STREAM_EVENT.validate_python(event, strict=True) for event in events] == events


def check_fields(value: object) -> None:
    if isinstance(value, BaseModel):
        name = type(value).__name__
        assert set(value.model_extra or {}) <= EXTRA.get(name, set()), f"{name} has {value.model_extra}"
        for name in type(value).model_fields:
            check_fields(getattr(value, name))
    elif isinstance(value, list):
        for entry in value:
            check_fields(entry)


def check_grammar(events: Events) -> None:
    assert GRAMMAR.fullmatch("".join(LETTERS[event["type"]] for event in events))
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


def by_item(events: Events) -> list[Events]:
    """The events of each item, in the order of the items; an item's `output_index` is its place among them."""
    items: list[Events] = []
    for event in events:
        if event["type"] == "response.output_item.added":
            items.append([])
        if "output_index" in event:
            assert event["output_index"] == len(items) - 1
            items[-1].append(event)
    return items


def check_items(events: Events) -> None:
    """Each item has the events of its kind, all naming it, and its deltas are its text."""
    for item_events in by_item(events):
        added, done = item_events[0]["item"], item_events[-1]["item"]
        letters = "".join(LETTERS[event["type"]] for event in item_events)
        contents = CUT_CONTENT if done.get("status") == "incomplete" else CONTENT
        assert contents[done["type"]].fullmatch(letters)
        assert {event.get("item_id", added["id"]) for event in item_events} == {added["id"]}
        grows = {"content", "arguments", "input", "encrypted_content", "status"}
        assert {**added, **{name: done[name] for name in grows & set(done)}} == done
        assert added.get("status", "in_progress") == "in_progress"
        assert not any(added.get(name) for name in grows - {"status"})
        check_text(item_events)
    ids = [
        event["item"][name]
        for event in events
        if event["type"] == "response.output_item.added"
        for name in ("id", "call_id")
        if name in event["item"]
    ]
    assert len(ids) == len(set(ids))


def check_text(item_events: Events) -> None:
    """Deltas aren't empty. They and their log-probabilities concatenate to those of the final events."""
    deltas = [event for event in item_events if "delta" in event]
    text = "".join(event["delta"] for event in deltas)
    logprobs = [entry for event in deltas for entry in event.get("logprobs", [])]
    assert all(event["delta"] for event in deltas)
    for event in item_events:
        if event["type"].endswith((".delta", ".added", ".compacting")):
            continue
        end: dict[str, Any] = event.get("item") or event.get("part") or event
        if "content" in end:
            [end] = end["content"]
        if end.get("type") != "compaction":
            assert end.get("text", end.get("arguments", end.get("input"))) == text
        assert end.get("logprobs", logprobs) == logprobs


def open_responses_items(items: Events) -> Events:
    """Items as Open Responses types them: no calls of custom tools, and an `encrypted_content` is absent, not null."""
    typed = [item for item in items if item["type"] != "custom_tool_call"]
    return [{k: v for k, v in item.items() if (k, v) != ("encrypted_content", None)} for item in typed]


def check_open_responses(events: Events) -> None:
    """Open Responses' schema accepts every event, except the kinds where it differs from OpenAI."""
    for event in events:
        kind = event["type"].replace("reasoning_text", "reasoning")
        if kind in UNLIKE_OPEN_RESPONSES | OURS or "custom_tool_call" in kind:
            continue
        typed = {**event, "type": kind}
        if "response" in event:
            typed["response"] = open_responses_object(event["response"])
        if "item" in event:
            items = open_responses_items([event["item"]])
            if not items:
                continue
            [typed["item"]] = items
        name = kind.replace("response.", "response_").replace(".", "_").title().replace("_", "")
        assert open_responses_errors(name + "StreamingEvent", typed) == []


def open_responses_object(response: Mapping[str, Any]) -> dict[str, Any]:
    """A Response object with its items as Open Responses types them."""
    return {**response, "output": open_responses_items(response["output"])}


def text_of(item: dict[str, Any]) -> str | None:
    """The text of a message or the arguments of a function call, which the SDK's accumulator builds."""
    if item["type"] == "message":
        return "".join(part["text"] for part in item["content"])
    arguments: str | None = item.get("arguments")
    return arguments


def fold(events: Events) -> dict[str, Any]:
    """The final response of a stream by the SDK's accumulator, with the items as their events built them."""
    state: ResponseStreamState[Any] = ResponseStreamState(input_tools=omit, text_format=omit)
    final: Any = None
    built: dict[int, dict[str, Any]] = {}
    for event in parse(events):
        state.handle_event(event)
        final = getattr(event, "response", final)
        if event.type == "response.output_item.done":
            built[event.output_index] = event.item.to_dict(mode="json", exclude_unset=True)
    completed = state._completed_response
    if completed is not None:
        assert completed.id == final.id
        messages = [text_of(item) or "" for item in built.values() if item["type"] == "message"]
        assert completed.output_text == "".join(messages)
    accumulated = getattr(state, "_ResponseStreamState__current_snapshot").output  # noqa: B009, mangled
    grown = [item.to_dict(mode="json") for item in accumulated]
    assert [(item["id"], text_of(item)) for item in grown] == [(item["id"], text_of(item)) for item in built.values()]
    return {**final.to_dict(mode="json", exclude_unset=True), "output": list(built.values())}
