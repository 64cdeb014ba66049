"""Any stream of a response folds, through the SDK's accumulator, to the chat completion of the response."""

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.lib.streaming._deltas import accumulate_delta
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel, TypeAdapter

from responses_api.chat import REASONING_FIELDS, ChunkStream, Form, chat_completion
from responses_api.chat import ChatCompletion as OurCompletion
from responses_api.chat import ChatCompletionChunk as OurChunk
from responses_api.errors import Error
from responses_api.protocol.objects import Response
from responses_api.streaming import Outcome
from responses_api.streaming.json_copy import json_copy
from tests.streaming.steps import STEPS, Call, Reasoning, Steps, Text
from tests.streaming.test_builder_properties import OUTCOMES, USAGE, build

COMPLETION: TypeAdapter[Any] = TypeAdapter(OurCompletion)
CHUNK: TypeAdapter[Any] = TypeAdapter(OurChunk | Error)

EXTRA = {"reasoning_content", "reasoning", "metadata", "custom"}
"""Fields that the SDK doesn't type in answers or in chunks."""


def form(field: str = "reasoning_content", **options: Any) -> Form:
    return Form(reasoning_fields=REASONING_FIELDS[field], version="1", **options)


def chunks(steps: Steps, outcome: Outcome = "completed", form: Form = form()) -> tuple[list[Any], Response]:  # noqa: B008
    """The chunks of a stream, and the response that is stored."""
    events, stored = build(steps, outcome)
    stream = ChunkStream(form, reword=str.upper)
    made = [chunk for event in events for chunk in stream.feed(event)]
    for chunk in made:
        assert CHUNK.validate_python(chunk, strict=True) == chunk
    return made, stored


def check_fields(value: Any) -> None:
    """The SDK types every field, but for the known ones."""
    if isinstance(value, BaseModel):
        assert set(value.model_extra or {}) <= EXTRA
        for name in type(value).model_fields:
            check_fields(getattr(value, name))
    elif isinstance(value, list):
        for entry in value:
            check_fields(entry)


def begins_custom(chunk: Any) -> bool:
    """Whether it begins the call of a custom tool, which the SDK has no type for."""
    return any(call.get("type") == "custom" for one in chunk["choices"] for call in one["delta"].get("tool_calls", ()))


def folded(made: list[Any]) -> dict[str, Any]:
    """The only choice of the chunks, by the accumulation of the SDK."""
    message: dict[Any, Any] = {}
    entries: list[Any] = []
    finish = None
    for chunk in made:
        if not begins_custom(chunk):
            check_fields(ChatCompletionChunk.model_validate(chunk, strict=True))
        for choice in chunk["choices"]:
            assert (choice["index"], finish) == (0, None)
            message = accumulate_delta(message, json_copy(choice["delta"]))
            entries += (choice["logprobs"] or {"content": []})["content"]
            finish = choice["finish_reason"]
    for index, call in enumerate(message.get("tool_calls", ())):
        assert call.pop("index") == index
    logprobs = {"content": entries, "refusal": None} if entries else None
    return {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": finish}


@settings(max_examples=200, deadline=None)
@given(STEPS, OUTCOMES, st.sampled_from(sorted(REASONING_FIELDS)), st.booleans())
def test_streams_fold_to_the_completion(steps: Steps, outcome: Outcome, field: str, usage: bool) -> None:
    """Streamed and whole are the same message, in the SDK's types; the SDK's helper folds the stream."""
    given = form(field, has_usage=usage, has_metadata=True)
    made, stored = chunks(steps, outcome, given)
    heads = [{name: chunk[name] for name in ("id", "created", "model", "system_fingerprint")} for chunk in made[:-1]]
    assert all(one == heads[0] for one in heads)
    if outcome in ("failed", "cancelled"):
        assert set(made[-1]) == {"error"}
        assert all(choice["finish_reason"] is None for chunk in made[:-1] for choice in chunk["choices"])
        return
    whole = chat_completion(stored, given)
    assert COMPLETION.validate_python(whole, strict=True) == whole
    check_fields(ChatCompletion.model_validate(whole, strict=True))
    [choice] = whole["choices"]
    expected: Any = {**choice, "message": {**choice["message"], "content": choice["message"]["content"] or ""}}
    del expected["message"]["annotations"]
    assert folded(made) == expected
    counts: list[Any] = [None] * (len(made) - 1) + [whole["usage"]] if usage else []
    assert [chunk["usage"] for chunk in made if "usage" in chunk] == counts
    if not any(isinstance(step, Call) and step.custom for step in steps):
        state: ChatCompletionStreamState[Any] = ChatCompletionStreamState()
        for chunk in made:
            state.handle_chunk(ChatCompletionChunk.model_validate(chunk))
        final = state.current_completion_snapshot.choices[0]
        assert final.message.content == expected["message"]["content"]
        assert final.finish_reason == choice["finish_reason"]


def test_the_order_of_chunks() -> None:
    """The role first, once; the id and the name of a call once; the reason last, in a chunk of its own."""
    made, _ = chunks(
        [
            Reasoning(delta="Hm."),
            Text(delta="Hi"),
            Text(delta="!"),
            Call(name="f", deltas=("{", "}")),
            Call(name="g", custom=True),
        ]
    )
    deltas = [choice["delta"] for chunk in made for choice in chunk["choices"]]
    ids = [call["id"] for delta in deltas for call in delta.get("tool_calls", ()) if "id" in call]
    assert deltas == [
        {"role": "assistant", "content": "", "refusal": None},
        {"reasoning_content": "Hm."},
        {"content": "Hi"},
        {"content": "!"},
        {"tool_calls": [{"index": 0, "id": ids[0], "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]},
        {"tool_calls": [{"index": 1, "id": ids[1], "type": "custom", "custom": {"name": "g", "input": ""}}]},
        {},
    ]
    assert made[-1]["choices"][0] == {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "tool_calls"}
    assert all(
        set(choice) == {"index", "delta", "logprobs", "finish_reason"} for chunk in made for choice in chunk["choices"]
    )


def test_texts_of_several_items_are_separated() -> None:
    """By a blank line: messages and reasoning each, streamed or not."""
    steps: Steps = [Reasoning(delta="a"), Text(delta="b"), Reasoning(delta="c"), Call(name="f"), Text(delta="d")]
    made, stored = chunks(steps)
    message = folded(made)["message"]
    whole: Any = chat_completion(stored, form())["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("b\n\nd", "a\n\nc")
    assert (whole["content"], whole["reasoning_content"]) == ("b\n\nd", "a\n\nc")


@pytest.mark.parametrize(
    ("steps", "outcome", "reason"),
    [
        ([Text(delta="a")], "completed", "stop"),
        ([], "completed", "stop"),
        ([Text(delta="a"), Call(name="f")], "completed", "tool_calls"),
        ([Call(name="f", custom=True)], "completed", "tool_calls"),
        ([Call(name="f", deltas=('{"a',), end="left open")], "incomplete", "length"),
        ([], "incomplete", "length"),
    ],
)
def test_reasons(steps: Steps, outcome: Outcome, reason: str) -> None:
    """A cut call is part of the answer."""
    made, stored = chunks(steps, outcome)
    [choice] = chat_completion(stored, form())["choices"]
    assert choice["finish_reason"] == made[-1]["choices"][0]["finish_reason"] == reason
    assert ("tool_calls" in choice["message"]) == any(isinstance(step, Call) for step in steps)


def test_filtered_content_and_refusals() -> None:
    """Which this server doesn't make."""
    _, stored = chunks([Text(delta="a")], "incomplete")
    stored["incomplete_details"] = {"reason": "content_filter"}
    item: Any = stored["output"][0]
    item["content"].append({"type": "refusal", "refusal": "No."})
    [choice] = chat_completion(stored, form())["choices"]
    assert choice["finish_reason"] == "content_filter"
    assert (choice["message"]["content"], choice["message"]["refusal"]) == ("a", "No.")


@pytest.mark.parametrize("field", sorted(REASONING_FIELDS))
def test_fields_of_the_reasoning(field: str) -> None:
    """As the server is configured."""
    made, stored = chunks([Reasoning(delta="Hm."), Text(delta="Hi")], form=form(field))
    whole: Any = chat_completion(stored, form(field))["choices"][0]["message"]
    for message in (whole, folded(made)["message"]):
        assert {name: message[name] for name in EXTRA & set(message)} == dict.fromkeys(REASONING_FIELDS[field], "Hm.")


def test_fields_of_the_answer() -> None:
    """The head, the counts, and metadata if the request had any."""
    _, stored = chunks([Text(delta="Hi")])
    whole = chat_completion(stored, form(has_metadata=True))
    assert whole["id"] == "chatcmpl-1"
    assert whole["created"] == stored["created_at"]
    assert whole.get("metadata") == stored["metadata"] == {"a": "b"}
    assert "metadata" not in chat_completion(stored, form())
    assert whole["system_fingerprint"] != chat_completion({**stored, "model": "n"}, form())["system_fingerprint"]
    assert whole["usage"] == {
        "prompt_tokens": USAGE["input_tokens"],
        "completion_tokens": USAGE["output_tokens"],
        "total_tokens": USAGE["total_tokens"],
        "prompt_tokens_details": {**USAGE["input_tokens_details"], "audio_tokens": 0},
        "completion_tokens_details": {
            **USAGE["output_tokens_details"],
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
    assert chat_completion({**stored, "usage": None}, form())["usage"] is None


def test_errors_end_a_stream() -> None:
    """With the words of the chat, and nothing after them."""
    for outcome in set(get_args(Outcome)) - {"completed", "incomplete"}:
        made, _ = chunks([Text(delta="Hi")], outcome)
        error = made[-1]["error"]
        assert error["message"] == ("THE ENGINE STOPPED." if outcome == "failed" else "THE RESPONSE WAS CANCELLED.")
        assert (error["type"], error["param"]) == ("server_error", None)
    stream = ChunkStream(form())
    for code, kind in {"rate_limit_exceeded": "rate_limit_error", "invalid_prompt": "invalid_request_error"}.items():
        event: Any = {"type": "error", "code": code, "message": "Too long.", "param": None, "sequence_number": 0}
        [chunk] = stream.feed(event)
        assert chunk == {"error": {"message": "Too long.", "type": kind, "param": None, "code": code}}
