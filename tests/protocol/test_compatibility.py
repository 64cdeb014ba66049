"""`docs/compatibility.md` lists everything, with the status that the code has."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.urls import Resolver404, resolve
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses import Response
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from responses_api.chat import CreateChatCompletion, translate
from responses_api.errors import InvalidRequest, UnsupportedParameter
from responses_api.protocol import CreateResponse, input_items, parse_create
from responses_api.protocol.items.hosted import HOSTED_TYPES
from responses_api.protocol.items.input import LATER_TYPES, OWN_TYPES
from tests.protocol.references import SCHEMA
from tests.protocol.test_items import ITEMS
from tests.protocol.test_response import response
from tests.streaming.streams import EVENT_TYPES, LETTERS, OURS, UNLIKE_OPEN_RESPONSES

DOCUMENT = Path(__file__).parents[2] / "docs" / "compatibility.md"

TITLES = ("Endpoints", "Parameters of `POST /responses`", "Items", "Content parts", "Events", "Chat Completions")
NOT_DONE = {"refused for now", "never"}
WORDS = {"done", "accepted and echoed", "accepted", "kept", "refused for now", "not yet", "never", "sent"}

# A value of each refused parameter that has an effect.
ASKING: dict[str, Any] = {
    "access_programs": {}, "background_options": {},
    "image": {}, "moderation": {}, "personality": "x",
    "prompt": {"id": "p"},
}  # fmt: skip


@cache
def rows(title: str) -> dict[str, str]:
    """The names in a section's table, and their status."""
    section = DOCUMENT.read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    found = re.findall(r"^\| `([^`]+)` \| ([^|]*) \|", section, flags=re.MULTILINE)
    assert len(found) == len(dict(found))
    return dict(found)


def schemas() -> dict[str, Any]:
    published: dict[str, Any] = json.loads(SCHEMA.read_text())["components"]["schemas"]
    return published


def types_of(names: list[str]) -> set[str]:
    kinds = (schemas()[name]["properties"]["type"] for name in names)
    return {kind["const"] if "const" in kind else kind["enum"][0] for kind in kinds}


def test_every_parameter_is_in_the_table() -> None:
    assert set(ResponseCreateParamsBase.__annotations__) <= set(rows("Parameters of `POST /responses`"))
    assert set(CreateResponse.model_fields) == set(rows("Parameters of `POST /responses`"))


def test_refused_parameters_are_listed_as_refused() -> None:
    refused = {name for name, word in rows("Parameters of `POST /responses`").items() if word in NOT_DONE}
    assert refused == set(ASKING)
    for name, value in ASKING.items():
        with pytest.raises(UnsupportedParameter) as caught:
            parse_create({"input": "hi", name: value})
        assert str(caught.value.param).startswith(name)


def test_echoed_parameters_are_in_the_response() -> None:
    table = rows("Parameters of `POST /responses`")
    assert {name for name, word in table.items() if word == "accepted and echoed"} <= set(response())


def test_every_parameter_of_a_chat_is_in_the_table() -> None:
    """Those that are never supported are refused by name."""
    table = rows("Chat Completions")
    assert set(CompletionCreateParamsBase.__annotations__) <= set(table)
    assert set(CreateChatCompletion.model_fields) == set(table)
    for name, word in table.items():
        if word in NOT_DONE:
            with pytest.raises(UnsupportedParameter) as caught:
                translate({"messages": [{"role": "user", "content": "Hi"}], name: "x"})
            assert caught.value.param == name


def test_every_field_of_a_response_is_in_the_table() -> None:
    listed = set(rows("Fields of a response"))
    assert listed == set(response())
    assert set(Response.model_fields) | set(schemas()["ResponseResource"]["properties"]) <= listed


def test_every_item_type_is_in_the_table() -> None:
    table = rows("Items")
    assert set(table) == {"message", *OWN_TYPES, *HOSTED_TYPES, *LATER_TYPES}
    assert {name for name, word in table.items() if word == "kept"} == set(HOSTED_TYPES)
    assert types_of(["Message", "FunctionCall", "FunctionCallOutput", "ReasoningBody", "CompactionBody"]) <= set(table)


def test_refused_items_are_listed_as_refused() -> None:
    samples = {"compaction_trigger": {"type": "compaction_trigger"}, **{sent["type"]: sent for sent, _ in ITEMS}}
    for name, word in rows("Items").items():
        if name in ("item_reference", "compaction"):
            # A service replaces them with the items that they refer to.
            assert word == "done"
            continue
        item = samples.get(name, {"type": name, "role": "user", "content": "a"})
        refused = False
        try:
            input_items(parse_create({"input": [item]}))
        except UnsupportedParameter:
            refused = True
        assert refused == (word in NOT_DONE), name


def test_every_part_type_is_in_the_table() -> None:
    names = ["InputTextContent", "InputImageContent", "InputFileContent", "InputVideoContent", "OutputTextContent"]
    names += ["RefusalContent", "SummaryTextContent", "ReasoningTextContent"]
    assert types_of(names) | {"input_audio"} == set(rows("Content parts"))
    for name, word in rows("Content parts").items():
        if word in NOT_DONE:
            with pytest.raises(InvalidRequest):
                parse_create({"input": [{"role": "user", "content": [{"type": name}]}]})


def test_every_event_is_in_the_table() -> None:
    """The events listed as sent are those of the grammar of our streams."""
    published = types_of([name for name in schemas() if name.endswith("StreamingEvent")])
    table = rows("Events")
    assert set(table) == set(EVENT_TYPES) | published | OURS
    assert {name for name, word in table.items() if word == "sent"} == set(LETTERS)
    different = DOCUMENT.read_text().split("## Where Open Responses differs")[1]
    assert all(f"`{name}` event" in different for name in UNLIKE_OPEN_RESPONSES)


def test_endpoints_listed_as_done_are_served() -> None:
    for endpoint, word in rows("Endpoints").items():
        method, path = endpoint.split(" ")
        if word != "done":
            continue
        for prefix in ("", "/v1"):
            try:
                view = resolve(prefix + re.sub(r"{\w+}", "x", path)).func
            except Resolver404:
                pytest.fail(f"{endpoint} is not served.")
            allowed = getattr(view, "view_class", None) or getattr(view, "cls")  # noqa: B009, by Django or by DRF
            assert hasattr(allowed, method.lower()), endpoint


def test_every_status_is_explained() -> None:
    words = {word for title in TITLES for word in rows(title).values()}
    assert words <= WORDS
    explained = re.findall(r"^\| ([a-z ]+) \| [a-z0-9]", DOCUMENT.read_text(), flags=re.MULTILINE)
    assert words - {"sent"} <= set(explained)
