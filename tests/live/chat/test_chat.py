"""Chat completions through the real SDK, in both shapes. Each answer is checked whole, streamed and as a response."""

import json
from typing import Any

import pytest
from openai import APIError, BadRequestError, LengthFinishReasonError, pydantic_function_tool
from pydantic import BaseModel

from tests.live.client import LONG, active, check_envelope, eventually
from tests.live.generation.tool_calls import call
from tests.live.server import LiveServer

from .chats import MODEL, ask, function, text_of, user

TOOLS = [function("find", name="string"), function("add", left="integer", right="integer")]
GREP: Any = {"type": "custom", "custom": {"name": "grep", "description": "Searches."}}
ENDS = "[[say: One two three.]]"


class City(BaseModel):
    name: str
    people: int


class find(BaseModel):  # noqa: N801, the name of the tool
    name: str


def test_text(server: LiveServer) -> None:
    """Every field of an answer."""
    completion = ask(server, user("Hello"), metadata={"a": "b"}, n=1, store=False, modalities=["text"])
    answer = completion.to_dict()
    assert answer.pop("id").startswith("chatcmpl-")
    assert answer.pop("system_fingerprint").startswith("fp_")
    assert isinstance(answer.pop("created"), int)
    usage = answer.pop("usage")
    assert answer == {
        "object": "chat.completion",
        "model": "scripted",
        "service_tier": "default",
        "metadata": {"a": "b"},
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "You said: Hello", "refusal": None, "annotations": []},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
    }
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert set(usage["prompt_tokens_details"]) == {"cached_tokens", "cache_write_tokens", "audio_tokens"}
    assert active(server) == 0


def test_every_address_and_nothing_is_stored(server: LiveServer) -> None:
    """With and without `/v1`; other methods and addresses say what to use."""
    with server.http() as http:
        for base in (server.url, server.url.removesuffix("/v1")):
            answer = http.post(f"{base}/chat/completions", json={"messages": [user("Hi")]})
            assert answer.status_code == 200
            response_id = "resp_" + answer.json()["id"].removeprefix("chatcmpl-")
            check_envelope(http.get(f"/responses/{response_id}"), 404, "not_found")
            answer = http.get(f"{base}/chat/completions")
            check_envelope(answer, 405, "method_not_allowed")
            assert answer.headers["allow"] == "POST"
            for path in ("chat/completions/chatcmpl-1", "chat/completions/chatcmpl-1/messages", "completions"):
                error = check_envelope(http.post(f"{base}/{path}", json={"prompt": "Hi"}), 404, "not_found")
                assert "`POST /responses`" in error["message"]


def test_sampling_and_log_probabilities(server: LiveServer) -> None:
    """Stops, and the log-probabilities of the text."""
    completion = ask(server, user(ENDS), stop=[" three"], logprobs=True, top_logprobs=2, seed=1, temperature=0.5)
    [choice] = completion.choices
    assert (choice.message.content, choice.finish_reason) == ("One two", "stop")
    assert "".join(entry.token for entry in choice.logprobs.content) == "One two"
    assert {len(entry.top_logprobs) for entry in choice.logprobs.content} == {2}


def test_reasoning(server: LiveServer) -> None:
    """It is a field of the message, and costs tokens."""
    completion = ask(server, user(f"[[think: Hm.]]{ENDS}"), reasoning_effort="low")
    assert completion.choices[0].message.reasoning_content == "Hm."
    assert completion.usage.completion_tokens_details.reasoning_tokens > 0


def test_a_schema(server: LiveServer) -> None:
    """By `parse`, and by the stream helper."""
    messages = [user('[[say: {"name": "Paris", "people": 2}]]')]
    completions = server.client().chat.completions
    parsed = completions.parse(model=MODEL, messages=messages, response_format=City)
    assert parsed.choices[0].message.parsed == City(name="Paris", people=2)
    with completions.stream(model=MODEL, messages=messages, response_format=City) as stream:
        assert [event.type for event in stream][-1] == "content.done"
        assert stream.get_final_completion().choices[0].message.parsed == City(name="Paris", people=2)
    with pytest.raises(LengthFinishReasonError):
        completions.parse(model=MODEL, messages=messages, response_format=City, max_completion_tokens=3)


def test_parsed_calls(server: LiveServer) -> None:
    """Two of one answer, by `parse` and by the stream helper."""
    messages = [user(call("find", {"name": "Ada"}) + call("find", {"name": "Bob"}))]
    tools = [pydantic_function_tool(find)]
    completions = server.client().chat.completions
    whole = completions.parse(model=MODEL, messages=messages, tools=tools)
    with completions.stream(model=MODEL, messages=messages, tools=tools) as stream:
        streamed = stream.get_final_completion()
    for completion in (whole, streamed):
        [choice] = completion.choices
        assert choice.finish_reason == "tool_calls"
        made = choice.message.tool_calls or []
        assert [one.function.parsed_arguments for one in made] == [find(name="Ada"), find(name="Bob")]
        assert len({one.id for one in made}) == 2


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_loop(server: LiveServer, stream: bool) -> None:
    """Three turns, with the SDK's own dump of each answer; the last turn costs what the same response costs."""
    history: list[Any] = [user(f"[[think: Hm.]][[say: Let me see.]]{call('find', {'name': 'Ada'})}")]
    completions = server.client().chat.completions
    outputs = [call("add", {"left": 2, "right": 40}), "[[say: It is 42.]]"]
    for output in outputs:
        if stream:
            with completions.stream(model=MODEL, messages=history, tools=TOOLS) as events:
                answer: Any = events.get_final_completion()
        else:
            answer = completions.create(model=MODEL, messages=history, tools=TOOLS)
        message = answer.choices[0].message
        history += [
            message.model_dump(),
            {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": output},
        ]
    completion = ask(server, *history, tools=TOOLS)
    assert completion.choices[0].message.content == "It is 42."
    assert completion.choices[0].finish_reason == "stop"


def test_repeated_ids_of_calls(server: LiveServer) -> None:
    """As clients number them in every turn."""
    made = {"id": "call_0", "type": "function", "function": {"name": "find", "arguments": '{"name": "Ada"}'}}
    turn = [{"role": "assistant", "tool_calls": [made]}, {"role": "tool", "tool_call_id": "call_0", "content": "1"}]
    ask(server, user("Hi"), *turn, *turn, user(ENDS), tools=TOOLS)


def test_a_custom_tool(server: LiveServer) -> None:
    completion = ask(server, user(call("grep", {"input": "a.*b"})), tools=[GREP, *TOOLS])
    assert [text_of(made) for made in completion.choices[0].message.tool_calls] == [("grep", "a.*b")]


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "add"}}])
def test_forced_calls(server: LiveServer, choice: Any) -> None:
    """The answer ends with `tool_calls`, also where OpenAI's API says `stop`."""
    completion = ask(server, user("Hello"), tools=TOOLS, tool_choice=choice, parallel_tool_calls=False)
    assert completion.choices[0].finish_reason == "tool_calls"
    [made] = completion.choices[0].message.tool_calls
    json.loads(made.function.arguments)


def test_cut_answers(server: LiveServer) -> None:
    """In the text, and within a call, which is part of the answer."""
    assert ask(server, user("[[tokens: 9]]"), max_tokens=3).choices[0].finish_reason == "length"
    cut = ask(server, user(call("find", {"name": "a " * 50})), tools=TOOLS, max_completion_tokens=20)
    assert (cut.choices[0].finish_reason, len(cut.choices[0].message.tool_calls)) == ("length", 1)


def test_the_usage_only_when_asked(server: LiveServer) -> None:
    """Otherwise no chunk has the key, and none is without a choice."""
    completions = server.client().chat.completions
    plain = [chunk.to_dict() for chunk in completions.create(model=MODEL, messages=[user("Hi")], stream=True)]
    assert all("usage" not in chunk and chunk["choices"] for chunk in plain)
    options: Any = {"stream": True, "stream_options": {"include_usage": True}}
    counted = [chunk.to_dict() for chunk in completions.create(model=MODEL, messages=[user("Hi")], **options)]
    assert [chunk["usage"] is None for chunk in counted] == [True] * (len(counted) - 1) + [False]
    assert counted[-1]["choices"] == []


def test_the_form_of_a_stream(server: LiveServer) -> None:
    """Lines of data only, then the end."""
    body = {"messages": [user("Hi")], "stream": True}
    with server.http() as http:
        answer = http.post("/chat/completions", json=body)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    lines = [line for line in answer.text.split("\n\n") if line and not line.startswith(":")]
    assert lines.pop() == "data: [DONE]"
    assert {json.loads(line.removeprefix("data: "))["object"] for line in lines} == {"chat.completion.chunk"}


def test_an_error_within_a_stream(server: LiveServer) -> None:
    """The SDK raises it; whole, it is a 500."""
    broken = user("[[say: One two]][[fail: The disk is full.]]")
    received = ""
    with pytest.raises(APIError, match="The disk is full") as caught:  # noqa: PT012, the stream begins well
        for chunk in server.client().chat.completions.create(model=MODEL, messages=[broken], stream=True):
            assert chunk.choices[0].finish_reason is None
            received += chunk.choices[0].delta.content or ""
    assert received == "One two"
    assert caught.value.code == "server_error"
    with server.http() as http:
        check_envelope(http.post("/chat/completions", json={"messages": [broken]}), 500, "server_error")


@pytest.mark.parametrize("stream", [False, True])
def test_errors_of_later_checks(server: LiveServer, stream: bool) -> None:
    """Of the admission and of the worker: the parameter and the message are the chat's."""
    schema = {"type": "object", "properties": {"city": {"type": "notatype"}}}
    unseen = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]
    cases: list[tuple[dict[str, Any], str | None, str]] = [
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}},
            "invalid_value",
            "response_format.json_schema.schema.properties.city.type",
        ),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": schema, "strict": True}}]},
            "invalid_value",
            "tools[0].function.parameters.properties.city.type",
        ),
        ({"messages": [user("Hi"), {"role": "user", "content": unseen}]}, "invalid_value", "messages[1].content[0]"),
        ({"messages": [user("a " * 200_000)]}, "context_length_exceeded", "messages"),
        ({"model": "unknown"}, "model_not_found", "model"),
        ({"n": 2}, "unsupported_parameter", "n"),
    ]
    with server.http() as http:
        for fields, code, param in cases:
            answer = http.post("/chat/completions", json={"messages": [user("Hi")], "stream": stream, **fields})
            error = check_envelope(answer, 404 if code == "model_not_found" else 400, code, param)
            assert not any(word in error["message"] for word in ("`input", "`text.format", "input_text"))


def test_refusals_are_exceptions_of_the_sdk(server: LiveServer) -> None:
    with pytest.raises(BadRequestError, match="gives one answer per request") as caught:
        server.client().chat.completions.create(model=MODEL, messages=[user("Hi")], n=2)
    assert caught.value.param == "n"


def test_a_client_that_leaves(server: LiveServer) -> None:
    """Its answer stops."""
    assert eventually(lambda: active(server) == 0)
    with server.client().chat.completions.create(model=MODEL, messages=[user(LONG)], stream=True) as stream:
        next(iter(stream))
        assert active(server) == 1
    assert eventually(lambda: active(server) == 0)
