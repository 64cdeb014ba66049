"""Compaction through the SDK: by hand, by threshold, by trigger."""

import time
from typing import Any

import pytest
from openai import BadRequestError, NotFoundError

from tests.live.client import check_envelope
from tests.live.server import LiveServer

MODEL = "smollm2-135m"
LONG = "All of this happened a long time ago and is told in many words. " * 40


def message(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text}


def history(turns: int = 12) -> list[Any]:
    """A developer's message, long turns, and a question."""
    items = [message("developer", "Stay polite.")]
    for turn in range(turns):
        items += [message("user", f"question {turn}. {LONG}"), message("assistant", f"answer {turn}. {LONG}")]
    return [*items, message("user", "the last question")]


def wire(item: Any) -> Any:
    """An item as on the wire: the SDK types all messages of a compaction as the assistant's, and warns otherwise."""
    return item.to_dict(mode="json", warnings=False)


def prompt_of(server: LiveServer, items: list[Any], **options: Any) -> str:
    """The prompt that the model gets for a history."""
    asked = [*items, message("user", "[[show-prompt]]")]
    shown = server.client().responses.create(model=MODEL, input=asked, **options)
    return shown.output_text


def count(server: LiveServer, items: list[Any]) -> int:
    return server.client().responses.input_tokens.count(model=MODEL, input=items).input_tokens


def test_a_history_becomes_a_summary_and_retained_items(server: LiveServer) -> None:
    """The output can be sent back whole, or only its compaction item; prompt and count are the same."""
    client = server.client()
    compacted = client.responses.compact(model=MODEL, input=history(), extra_body={"keep_tokens": 1000})
    assert compacted.object == "response.compaction"
    output = [wire(item) for item in compacted.output]
    assert [item["type"] for item in output] == ["message"] * (len(output) - 1) + ["compaction"]
    assert output[0]["role"] == "developer"
    assert output[-2]["content"][0]["text"] == "the last question"
    assert len({item["id"] for item in output}) == len(output)
    assert compacted.usage.output_tokens > 0
    assert compacted.usage.input_tokens > count(server, history(8))
    assert "question" not in str(output[-1])
    shown = prompt_of(server, output)
    assert "Summary of the conversation before this point" in shown
    assert "Stay polite." in shown
    assert shown.count("the last question") == 1
    assert "question 0" not in shown
    assert prompt_of(server, [output[0], output[-1]]) == shown
    assert count(server, output) == count(server, [output[0], output[-1]]) < count(server, history()) / 2
    with pytest.raises(NotFoundError):
        client.responses.retrieve(compacted.id)


def test_a_short_history_is_kept_whole(server: LiveServer) -> None:
    """It counts as before, and nothing is generated."""
    compacted = server.client().responses.compact(model=MODEL, input="Hello!", instructions="Be brief.")
    assert compacted.usage.total_tokens == 0
    output: list[Any] = [wire(item) for item in compacted.output]
    assert [item["type"] for item in output] == ["message", "compaction"]
    assert count(server, [output[-1]]) == count(server, output) == count(server, [message("user", "Hello!")])


def test_a_stored_history_is_compacted_and_continued(server: LiveServer) -> None:
    """By `previous_response_id`; the next turn on top of the item sees the last one."""
    client = server.client()
    first = client.responses.create(model=MODEL, input=f"My name is Ada. {LONG}")
    second = client.responses.create(model=MODEL, input="What is my name?", previous_response_id=first.id)
    compacted = client.responses.compact(model=MODEL, previous_response_id=second.id, extra_body={"keep_tokens": 1})
    item = wire(compacted.output[-1])
    on_top = client.responses.create(model=MODEL, input=[item, message("user", "[[show-prompt]]")])  # type: ignore[list-item]
    assert "What is my name?" in on_top.output_text
    chained = client.responses.create(model=MODEL, input="[[show-prompt]]", previous_response_id=on_top.id)
    assert "What is my name?" in chained.output_text
    listed = client.responses.input_items.list(on_top.id, order="asc").data
    assert [entry.type for entry in listed] == ["compaction", "message"]


def test_a_history_is_compacted_at_the_threshold(server: LiveServer) -> None:
    """Events in order, the item first in the output, stored as streamed, and not repeated in the next turn."""
    client = server.client()
    policy: Any = [{"type": "compaction", "compact_threshold": 4000}]
    with client.responses.stream(model=MODEL, input=history(), context_management=policy) as stream:
        events = list(stream)
        final = stream.get_final_response()
    kinds = [event.type for event in events]
    assert kinds[:7] == [
        "response.created", "response.in_progress", "mlx.compaction.started", "mlx.compaction.completed",
        "response.output_item.added", "response.compaction.compacting", "response.output_item.done",
    ]  # fmt: skip
    started, completed = events[2].to_dict(), events[3].to_dict()
    assert started["response_id"] == completed["response_id"] == final.id
    assert started["input_tokens"] == completed["input_tokens_before"] == count(server, history())
    assert final.usage is not None
    assert completed["input_tokens_after"] == final.usage.input_tokens < 4000
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [item.type for item in final.output] == ["compaction", "message"]
    assert client.responses.retrieve(final.id).output[0].to_dict() == final.output[0].to_dict()
    again = client.responses.create(
        model=MODEL, input="[[show-prompt]]", previous_response_id=final.id, context_management=policy
    )
    assert [item.type for item in again.output] == ["message"]
    assert "Summary of the conversation before this point" in again.output_text
    assert "question 0" not in again.output_text
    assert len(client.responses.input_items.list(again.id, limit=100).data) == len(history()) + 3


def test_below_the_threshold_nothing_happens(server: LiveServer) -> None:
    policy: Any = [{"type": "compaction", "compact_threshold": 100_000_000}]
    answer = server.client().responses.create(model=MODEL, input=history(2), context_management=policy)
    assert [item.type for item in answer.output] == ["message"]


def test_a_history_that_cannot_shorten_stays(server: LiveServer) -> None:
    """A single message over the threshold is answered unchanged."""
    policy: Any = [{"type": "compaction", "compact_threshold": 1}]
    answer = server.client().responses.create(model=MODEL, input="Hello!", context_management=policy)
    assert [item.type for item in answer.output] == ["message"]
    assert answer.output_text == "You said: Hello!"


def test_a_trigger_gives_only_the_item(server: LiveServer) -> None:
    """As JSON and as a stream; the trigger is not an item of the history."""
    client = server.client()
    asked: Any = [*history(), {"type": "compaction_trigger"}]
    with client.responses.stream(model=MODEL, input=asked) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds[2:] == [
        "response.output_item.added", "response.compaction.compacting", "response.output_item.done",
        "response.completed",
    ]  # fmt: skip
    whole = client.responses.create(model=MODEL, input=asked)
    for response in (final, whole):
        assert [item.type for item in response.output] == ["compaction"]
        assert response.usage is not None
        assert response.usage.output_tokens > 0
    listed = client.responses.input_items.list(whole.id, limit=100).data
    assert {item.type for item in listed} == {"message"}
    on_top = client.responses.create(model=MODEL, input="[[show-prompt]]", previous_response_id=whole.id)
    assert "question 0" not in on_top.output_text
    assert "the last question" in on_top.output_text


def test_a_foreign_or_altered_item_is_refused(keyed_server: LiveServer) -> None:
    """From another project, altered or invented, on every route; its owner can use it."""
    keys = dict(zip(("carol", "dave"), keyed_server.make_keys("carol", "dave"), strict=True))
    carol, dave = (keyed_server.client(key=key) for key in keys.values())
    item: Any = wire(carol.responses.compact(model=MODEL, input="a secret").output[-1])
    assert carol.responses.create(model=MODEL, input=[item, message("user", "go on")]).output_text  # type: ignore[list-item]
    blob = item["encrypted_content"]
    for altered in (blob[:-8] + "AAAAAAA=", blob[:20] + "x" + blob[21:], "mlxr1.", "gAAAAABpM0Yj-", blob + "é"):
        wrong: Any = [message("user", "a"), {**item, "encrypted_content": altered}]
        with pytest.raises(BadRequestError) as refused:
            carol.responses.create(model=MODEL, input=wrong)
        assert refused.value.param == "input[1].encrypted_content"
    for call in (dave.responses.create, dave.responses.compact, dave.responses.input_tokens.count):
        with pytest.raises(BadRequestError) as refused:
            call(model=MODEL, input=[item])
        assert refused.value.param == "input[0].encrypted_content"


@pytest.mark.parametrize(
    ("asked", "param", "code"),
    [
        ({"input": "a"}, "model", "missing_required_parameter"),
        ({"model": MODEL}, "input", "missing_required_parameter"),
        ({"model": MODEL, "input": "a", "stream": True}, "stream", "unsupported_parameter"),
        ({"model": MODEL, "input": "a", "conversation": "conv_x"}, "conversation", "unsupported_parameter"),
        ({"model": MODEL, "input": "a", "keep_tokens": 0}, "keep_tokens", "invalid_value"),
        ({"model": MODEL, "input": "a", "max_output_tokens": 16385}, "max_output_tokens", "invalid_value"),
        ({"model": MODEL, "input": "a", "temperature": 1}, "temperature", "unknown_parameter"),
        ({"model": MODEL, "input": [{"role": "x", "content": ""}]}, "input[0].role", "invalid_value"),
        ({"model": MODEL, "previous_response_id": "resp_x"}, "previous_response_id", "previous_response_not_found"),
    ],
)
def test_a_bad_request_names_its_place(server: LiveServer, asked: dict[str, Any], param: str, code: str) -> None:
    with server.http() as http:
        check_envelope(http.post("/responses/compact", json=asked), 400, code, param)


def test_a_client_that_leaves_ends_the_compaction(server: LiveServer) -> None:
    """The slot is free again, and nothing of the job is left."""
    slow = [message("user", f"[[slow: 1]] [[tokens: 500]] {number} {LONG}") for number in range(3)]
    with server.http() as http, pytest.raises(Exception, match="timed out"):
        http.post("/responses/compact", json={"model": MODEL, "input": slow, "keep_tokens": 1}, timeout=1)
    with server.http() as http:
        deadline = time.monotonic() + 20
        while (status := http.get("/status").json())["running"] + status["waiting"]:
            assert time.monotonic() < deadline, status
            time.sleep(0.1)


def test_a_reference_is_replaced_by_the_stored_item(server: LiveServer) -> None:
    """A reference to an item that is not stored is a 404 that names the place."""
    client = server.client()
    first = client.responses.create(model=MODEL, input="the first question")
    asked: Any = [
        message("user", "the first question"),
        {"type": "item_reference", "id": first.output[0].id},
        {"id": client.responses.input_items.list(first.id).data[0].id},
        message("user", "[[show-prompt]]"),
    ]
    shown = client.responses.create(model=MODEL, input=asked)
    assert shown.output_text.count("You said: the first question") == 1
    assert shown.output_text.count("the first question") == 3
    assert client.responses.input_tokens.count(model=MODEL, input=asked).input_tokens == shown.usage.input_tokens  # type: ignore[union-attr]
    listed = client.responses.input_items.list(shown.id, order="asc").data
    assert [item.type for item in listed] == ["message"] * 4
    assert listed[1].to_dict() == first.output[0].to_dict()
    client.responses.delete(first.id)
    assert client.responses.retrieve(shown.id).output_text == shown.output_text
    with pytest.raises(NotFoundError) as missing:
        client.responses.create(model=MODEL, input=[message("user", "a"), {"type": "item_reference", "id": "msg_none"}])  # type: ignore[list-item]
    assert missing.value.param == "input[1].id"


def test_references_to_large_items_are_refused_before_they_are_loaded(server: LiveServer) -> None:
    """20 KB that refer to 500 MB, on every route that takes references; the server answers others at once."""
    client = server.client()
    first = client.responses.create(model=MODEL, input="[[say: ok]]" + "a" * 1_000_000)
    item = client.responses.input_items.list(first.id).data[0].id
    wanted = [{"type": "item_reference", "id": item}] * 500
    with server.http() as http:
        for path, options, code in (
            ("/responses", {}, "entry_too_large"),
            ("/responses", {"stream": True}, "entry_too_large"),
            ("/responses", {"store": False}, "request_too_large"),
            ("/responses", {"background": True}, "request_too_large"),
            ("/responses/input_tokens", {}, "request_too_large"),
            ("/responses/compact", {"model": MODEL}, "request_too_large"),
        ):
            check_envelope(http.post(path, json={"input": wanted, **options}), 413, code, param="input")
        deadline = time.monotonic() + 20
        while http.get("/status").json()["assembly_bytes"]:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_a_large_compaction_delays_no_other_request(server: LiveServer) -> None:
    """However much it keeps: a long history is cut with a few renderings, beside other requests."""
    body = {"model": MODEL, "keep_tokens": 2**31 - 1, "input": [message("user", "a")] * 6000}
    with server.http() as http:
        compacted = http.post("/responses/compact", json=body)
        assert compacted.status_code == 200, compacted.text
        assert compacted.json()["model"] == http.post("/responses", json={"model": MODEL, "input": "a"}).json()["model"]
        assert len(compacted.json()["output"]) == 6001
        assert compacted.json()["usage"]["output_tokens"] == 0


def test_a_summary_is_shorter_than_what_it_replaces(server: LiveServer) -> None:
    """Its token limit is, even for a short history. A history that can't be shortened costs nothing."""
    policy: Any = [{"type": "compaction", "compact_threshold": 100}]
    talk: Any = [message("user", f"[[tokens: 1024]] question {number} of many words") for number in range(16)]
    talk.append(message("user", "[[say: ok]]"))
    client = server.client()
    answer = client.responses.create(model=MODEL, input=talk, context_management=policy)
    assert [item.type for item in answer.output] == ["compaction", "message"]
    assert answer.usage is not None
    assert answer.usage.input_tokens < count(server, talk)
    short: Any = [message("user", "[[tokens: 1024]] a"), message("user", "[[say: ok]] " + "b " * 60)]
    kept = client.responses.create(model=MODEL, input=short, context_management=policy)
    assert [item.type for item in kept.output] == ["message"]
    # The tokens of a summary are in the usage records, but not in the response's usage.
    ((generated,),) = server.rows("SELECT output_tokens FROM responses_api_usagerecord ORDER BY id DESC LIMIT 1")
    assert generated < 10


def test_a_compaction_too_large_to_be_sent_is_refused(server: LiveServer) -> None:
    """A history of references to a large item: its whole answer would disconnect every reader of the process."""
    with server.http() as http:
        search = {"type": "web_search_call", "action": {"type": "search", "query": "a" * 1_000_000}}
        conversation = http.post("/conversations", json={"items": [search]}).raise_for_status().json()["id"]
        (item,) = http.get(f"/conversations/{conversation}/items").json()["data"]
        # The model doesn't read it, so it stays unchanged.
        reference = {"type": "item_reference", "id": item["id"]}
        asked = {"model": MODEL, "input": [*[reference] * 12, message("user", "hi")]}
        refused = http.post("/responses/compact", json=asked)
    assert refused.status_code == 413
    assert refused.headers["x-should-retry"] == "false"
    assert "bytes" in refused.json()["error"]["message"]
