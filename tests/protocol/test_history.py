"""Input items in wire form, and the messages that a chat template gets."""

from itertools import count
from typing import Any

from openai.types.responses import ResponseItem
from pydantic import TypeAdapter

from responses_api.ids import Prefix
from responses_api.protocol import input_items, parse_create, shown_items

ITEM: TypeAdapter[Any] = TypeAdapter(ResponseItem)


def counted() -> Any:
    numbers = count(1)

    def make(prefix: Prefix) -> str:
        return f"{prefix}{next(numbers)}"

    return make


def items_of(value: object) -> list[dict[str, Any]]:
    items = input_items(parse_create({"input": value}), new_id=counted())
    for item in items:
        ITEM.validate_python(item)
    return items


def test_string_is_a_user_message() -> None:
    assert items_of("hi") == [
        {
            "id": "msg_1",
            "type": "message",
            "role": "user",
            "status": "completed",
            "content": [{"type": "input_text", "text": "hi"}],
        }
    ]


def test_assistant_text_becomes_an_output_text_part() -> None:
    [item] = items_of([{"role": "assistant", "content": "yes"}])
    assert item["content"] == [{"type": "output_text", "text": "yes", "annotations": [], "logprobs": []}]


def test_the_clients_fields_are_kept() -> None:
    citation = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
    logprob = {"token": "a", "bytes": [97], "logprob": -0.5}
    text = {
        "type": "output_text",
        "text": "a",
        "annotations": [citation],
        "logprobs": [{**logprob, "top_logprobs": [logprob]}],
    }
    message = {
        "id": "mine",
        "type": "message",
        "role": "assistant",
        "status": "incomplete",
        "content": [text, {"type": "refusal", "refusal": "no"}],
        "phase": "commentary",
    }
    assert items_of([message]) == [message]


def test_ids_are_unique_within_a_request() -> None:
    """The first use of a client's id keeps it; a second use and a missing id get new ids."""
    messages = [{"role": "user", "content": "a", "id": "mine"}] * 2 + [{"role": "user", "content": "b"}]
    assert [item["id"] for item in items_of(messages)] == ["mine", "msg_1", "msg_2"]


def test_without_an_id_factory_only_the_clients_ids_are_there() -> None:
    messages = [{"role": "user", "content": "a", "id": "mine"}] * 2 + [{"role": "user", "content": "b"}]
    listed = input_items(parse_create({"input": messages}))
    assert [item.get("id") for item in listed] == ["mine", None, None]


def test_cache_breakpoints_are_ignored_hints() -> None:
    part = {"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "30m"}}
    assert items_of([{"role": "user", "content": [part]}])[0]["content"] == [{"type": "input_text", "text": "a"}]


def test_instructions_come_first_and_summaries_are_system_messages() -> None:
    [developer, user] = items_of([{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi"}])
    first, *rest = shown_items([developer, user], "Speak French.")
    assert (first["role"], first["content"]) == ("system", [{"type": "input_text", "text": "Speak French."}])
    assert rest == [developer, user]
    assert shown_items([], "") == []
    [summary] = shown_items([{"type": "summary", "text": "They met."}])
    assert summary["role"] == "system"
    assert summary["content"][0]["text"].endswith("\nThey met.")
