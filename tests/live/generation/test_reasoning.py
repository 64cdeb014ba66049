"""Reasoning items and log-probabilities through the real SDK, in both shapes."""

import json
from typing import Any

import pytest

from tests.live.server import LiveServer

from .tool_calls import MODEL, TOOLS, ask, call, output, wire

FIND = call("find", {"name": "Ada"})
SAID = "Naïve 日本 😀, of course."
ENCRYPTED: Any = ["reasoning.encrypted_content"]
LOGPROBS: Any = ["message.output_text.logprobs"]


@pytest.mark.parametrize("streamed", [False, True])
def test_reasoning_comes_before_the_message(server: LiveServer, streamed: bool) -> None:
    """It is a separate item, its tokens are counted, the text has none of it, and by default it is not encrypted."""
    response = ask(server, streamed, input=f"[[think: one two three]][[say: {SAID}]]", tools=[])
    reasoning, message = response.output
    assert (reasoning.type, reasoning.summary, reasoning.status) == ("reasoning", [], "completed")
    assert [(part.type, part.text) for part in reasoning.content] == [("reasoning_text", "one two three")]
    assert reasoning.encrypted_content is None
    assert (message.type, response.output_text) == ("message", SAID)
    details = response.usage.output_tokens_details
    assert 3 <= details.reasoning_tokens < response.usage.output_tokens
    assert wire(server.client().responses.retrieve(response.id).output) == wire(response.output)
    without = ask(server, streamed, input=f"[[say: {SAID}]]", tools=[])
    assert without.usage.output_tokens_details.reasoning_tokens == 0
    assert [item.type for item in without.output] == ["message"]


def test_the_events_of_reasoning(server: LiveServer) -> None:
    """Deltas, done event, part and item have the same text."""
    asked: dict[str, Any] = {"model": MODEL, "input": f"[[slow: 0.05]][[think: {SAID}]][[say: Yes.]]"}
    events: list[Any] = list(server.client().responses.create(stream=True, **asked))
    deltas = [event.delta for event in events if event.type == "response.reasoning_text.delta"]
    (done,) = [event for event in events if event.type == "response.reasoning_text.done"]
    item = events[-1].response.output[0]
    assert len(deltas) > 1
    assert "".join(deltas) == done.text == item.content[0].text == SAID
    assert done.item_id == item.id
    added = [event.item.type for event in events if event.type == "response.output_item.added"]
    assert added == ["reasoning", "message"]


@pytest.mark.parametrize("streamed", [False, True])
def test_encrypted_reasoning_replaces_its_text(server: LiveServer, streamed: bool) -> None:
    """Replayed without anything stored, it counts like its text."""
    question = {"role": "user", "content": f"[[think: {SAID * 5}]][[say: Let me see.]]{FIND}"}
    first = ask(server, streamed, input=[question], store=False, include=ENCRYPTED)
    reasoning, *others = wire(first.output)
    assert reasoning["encrypted_content"]
    assert SAID not in reasoning["encrypted_content"]
    sealed = {key: value for key, value in reasoning.items() if key != "content"}
    bare = {key: value for key, value in reasoning.items() if key != "encrypted_content"}
    returned = output(first.output[-1], "[[say: Ada.]]")

    def count(*replayed: Any) -> int:
        items = [question, *replayed, *others, returned]
        answer = ask(server, streamed, input=items, store=False, include=ENCRYPTED)
        counted = server.client().responses.input_tokens.count(model=MODEL, tools=TOOLS, input=items)
        assert answer.output_text == "Ada."
        assert answer.usage.input_tokens == counted.input_tokens
        return int(answer.usage.input_tokens)

    whole = count(reasoning)
    assert count(sealed) == count(bare) == whole
    empty = {"type": "reasoning", "id": "rs_1", "summary": []}
    assert count(empty) == count({**empty, "encrypted_content": "gAAAAABo-another-server-s"}) == count()


def test_effort_none_turns_thinking_off(server: LiveServer) -> None:
    """If the model's thinking can be turned off; the effort is echoed."""
    response = ask(server, True, input=f"[[think: {SAID * 20}]][[say: Yes.]]", tools=[], reasoning={"effort": "none"})
    assert response.reasoning.effort == "none"
    assert response.output_text == "Yes."
    full = ask(server, True, input=f"[[think: {SAID * 20}]][[say: Yes.]]", tools=[], reasoning={"effort": "high"})
    few = response.usage.output_tokens_details.reasoning_tokens
    assert few < full.usage.output_tokens_details.reasoning_tokens / 4


def spelt(entries: Any) -> bytes:
    return bytes(byte for entry in entries for byte in entry["bytes"])


@pytest.mark.parametrize("before", ["", "[[think: Hm, 日本.]]"])
@pytest.mark.parametrize("after", ["", FIND])
@pytest.mark.parametrize("top", [0, 3])
def test_log_probabilities_spell_the_text(server: LiveServer, before: str, after: str, top: int) -> None:
    """Delta, done event, part and object agree byte for byte, whatever surrounds the text."""
    asked: dict[str, Any] = {
        "model": MODEL,
        "tools": TOOLS,
        "input": f"{before}[[say: {SAID}]]{after}",
        "include": LOGPROBS,
        "top_logprobs": top,
    }
    events: list[Any] = list(server.client().responses.create(stream=True, **asked))
    deltas = [event.to_dict() for event in events if event.type == "response.output_text.delta"]
    (done,) = [event.to_dict() for event in events if event.type == "response.output_text.done"]
    (message,) = [item.to_dict() for item in events[-1].response.output if item.type == "message"]
    (part,) = message["content"]
    assert [spelt(delta["logprobs"]) for delta in deltas] == [delta["delta"].encode() for delta in deltas]
    gathered = [entry for delta in deltas for entry in delta["logprobs"]]
    assert gathered == done["logprobs"] == part["logprobs"]
    assert spelt(gathered).decode() == done["text"] == part["text"] == SAID
    for entry in gathered:
        assert entry["logprob"] <= 0
        assert len(entry["top_logprobs"]) == top
        assert [other["logprob"] for other in entry["top_logprobs"]] == sorted(
            (other["logprob"] for other in entry["top_logprobs"]), reverse=True
        )
    whole = server.client().responses.create(**asked)
    shown = [item.to_dict()["content"] for item in whole.output if item.type == "message"]
    assert json.dumps(shown) == json.dumps([message["content"]])
    stored = server.client().responses.retrieve(whole.id, include=LOGPROBS)
    assert wire(stored.output) == wire(whole.output)


def test_log_probabilities_of_structured_output(server: LiveServer) -> None:
    text: Any = {"format": {"type": "json_object"}}
    asked: dict[str, Any] = {"model": MODEL, "tools": TOOLS, "text": text, "include": LOGPROBS, "top_logprobs": 1}
    response = server.client().responses.create(input='[[think: Hm.]][[say: {"a": [1, "é"]}]]', **asked)
    part = response.output[-1].to_dict()["content"][0]
    assert spelt(part["logprobs"]).decode() == part["text"] == response.output_text
    assert json.loads(response.output_text) == {"a": [1, "é"]}


def test_by_default_there_are_none(server: LiveServer) -> None:
    response = ask(server, True, input=f"[[say: {SAID}]]")
    assert wire(response.output)[0]["content"][0]["logprobs"] == []


def test_reasoning_that_a_client_leaves_out_is_rendered_too(server: LiveServer) -> None:
    """By any worker, but only for the same history; a count includes it."""
    responses = server.client().responses
    asked: Any = {"role": "user", "content": "[[think: long and deep]][[say: remembered]]"}
    made = responses.create(model=MODEL, input=[asked])
    whole: Any = [asked, *wire(made.output), {"role": "user", "content": "on"}]
    short: Any = [item for item in whole if item.get("type") != "reasoning"]
    other: Any = [{**asked, "content": asked["content"] + " "}, *short[1:]]
    tokens = responses.input_tokens.count(model=MODEL, input=whole).input_tokens
    assert responses.input_tokens.count(model=MODEL, input=short).input_tokens == tokens
    usage = responses.create(model=MODEL, input=short).usage
    assert usage is not None
    assert usage.input_tokens == tokens
    assert responses.input_tokens.count(model=MODEL, input=other).input_tokens < tokens
