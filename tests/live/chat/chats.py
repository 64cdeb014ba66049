"""Chat completions through the SDK: each whole, streamed, and beside the response to the translated request."""

from typing import Any

import pytest
from openai.lib.streaming._deltas import accumulate_delta

from responses_api.chat import translate
from tests.live.server import LiveServer

MODEL = "smollm2-135m"
EXTENSIONS = (
    "chat_template_kwargs", "frequency_penalty", "logit_bias", "min_p", "presence_penalty", "repetition_penalty",
    "seed", "stop", "top_k",
)  # fmt: skip
"""Parameters that the SDK's method for responses lacks."""


def user(text: Any) -> Any:
    """A message of the user."""
    return {"role": "user", "content": text}


def function(name: str, /, **types: str) -> Any:
    """A function whose arguments have these types."""
    parameters = {
        "type": "object",
        "properties": {argument: {"type": kind} for argument, kind in types.items()},
        "required": list(types),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def without_ids(message: dict[str, Any]) -> dict[str, Any]:
    """A message without the ids of its calls, which differ between answers."""
    return message | {
        name: [{**call, "id": ""} for call in message[name]] for name in ("tool_calls",) if message.get(name)
    }


def streamed(server: LiveServer, **options: Any) -> dict[str, Any]:
    """The choice and the usage of a streamed answer, by the accumulation of the SDK's helper."""
    message: dict[Any, Any] = {}
    entries: list[Any] = []
    finish = usage = None
    given = {"stream": True, "stream_options": {"include_usage": True}, **options}
    for chunk in server.client().chat.completions.create(**given):
        usage = chunk.usage
        for choice in chunk.choices:
            message = accumulate_delta(message, choice.delta.to_dict())
            entries += choice.logprobs.content or [] if choice.logprobs else []
            finish = choice.finish_reason
    for index, call in enumerate(message.get("tool_calls", ())):
        assert call.pop("index") == index
    return {"message": message, "logprobs": [entry.to_dict() for entry in entries], "finish": finish, "usage": usage}


def near(value: float) -> Any:
    """A log-probability but for its rounding, which differs when less of the prompt is cached."""
    return pytest.approx(value, abs=1e-3)


def scored(entry: dict[str, Any]) -> dict[str, Any]:
    """The log-probabilities of a token, but for their rounding."""
    top = [{**other, "logprob": near(other["logprob"])} for other in entry["top_logprobs"]]
    return {**entry, "logprob": near(entry["logprob"]), "top_logprobs": top}


def ask(server: LiveServer, *messages: Any, **options: Any) -> Any:
    """The whole answer, after checks that the streamed one and the response that it maps to are the same."""
    options = {"model": MODEL, "messages": list(messages), **options}
    completion = server.client().chat.completions.create(**options)
    [choice] = completion.choices
    message = choice.message.to_dict()
    stream = streamed(server, **options)
    expected = {**message, "content": message["content"] or ""}
    del expected["annotations"]
    assert without_ids(stream["message"]) == without_ids(expected)
    assert stream["finish"] == choice.finish_reason
    logprobs = [entry.to_dict() for entry in choice.logprobs.content or []] if choice.logprobs else []
    assert stream["logprobs"] == [scored(entry) for entry in logprobs]
    response = server.client().responses.create(**translated(options))
    check_same(completion, response)
    for usage in (stream["usage"], completion.usage):
        assert (usage.prompt_tokens, usage.completion_tokens) == (
            response.usage.input_tokens,
            response.usage.output_tokens,
        )
    return completion


def translated(options: dict[str, Any]) -> Any:
    """The arguments for the SDK's method for responses."""
    payload = translate(options).payload
    extra = {name: payload.pop(name) for name in EXTENSIONS if name in payload}
    return {**payload, "extra_body": extra}


def check_same(completion: Any, response: Any) -> None:
    """The completion has the text, the calls, the reasoning and the log-probabilities of the response."""
    [choice] = completion.choices
    message, parts = (
        choice.message,
        [part for item in response.output if item.type == "message" for part in item.content],
    )
    assert (message.content or "") == "\n\n".join(part.text for part in parts if part.text)
    calls = [item for item in response.output if item.type.endswith("_call")]
    assert [text_of(call) for call in message.tool_calls or []] == [
        (call.name, getattr(call, "arguments", None) or getattr(call, "input", "")) for call in calls
    ]
    thoughts = [part.text for item in response.output if item.type == "reasoning" for part in item.content]
    assert getattr(message, "reasoning_content", "") == "\n\n".join(thoughts)
    entries = [entry for part in parts for entry in part.logprobs or []]
    assert [(entry.token, entry.logprob) for entry in (choice.logprobs.content if choice.logprobs else [])] == [
        (entry.token, near(entry.logprob)) for entry in entries
    ]


def text_of(call: Any) -> tuple[str, str]:
    """The name of a call and its text."""
    return (
        (call.custom.name, call.custom.input)
        if call.type == "custom"
        else (call.function.name, call.function.arguments)
    )
