"""Our extensions through the real SDK's `extra_body`, in both shapes."""

from typing import Any

import pytest
from openai import BadRequestError

from tests.live.server import LiveServer

TEXT = "one two three four five"
STOPS: list[tuple[Any, str]] = [
    ("three", "one two "),
    (["five", "two three", "four"], "one "),
    ([TEXT], ""),
    (["fives", "three five"], TEXT),
    ([], TEXT),
]


@pytest.mark.parametrize(("stop", "text"), STOPS, ids=str)
def test_an_answer_ends_before_a_stop_string(server: LiveServer, stop: Any, text: str) -> None:
    """JSON, stream and stored response end at the same character, as completed; generated tokens count."""
    client = server.client()
    asked: dict[str, Any] = {
        "model": "smollm2-135m",
        "input": f"[[say: {TEXT}]]",
        "extra_body": {"stop": stop},
    }
    whole = client.responses.create(**asked)
    events = list(client.responses.create(stream=True, **asked))
    streamed = events[-1].response
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    stored = client.responses.retrieve(streamed.id)
    assert "".join(deltas) == whole.output_text == streamed.output_text == stored.output_text == text
    assert {whole.status, streamed.status, stored.status, events[-1].type.split(".")[1]} == {"completed"}
    assert whole.usage is not None
    assert streamed.usage is not None
    words = {"one two ": 3, "one ": 3}.get(text, 5)
    assert whole.usage.output_tokens == streamed.usage.output_tokens == words


def test_the_next_turn_sees_the_cut_answer(server: LiveServer) -> None:
    client = server.client()
    first = client.responses.create(model="smollm2-135m", input="[[say: keep END drop]]", extra_body={"stop": " END"})
    second = client.responses.create(model="smollm2-135m", input="[[show-prompt]]", previous_response_id=first.id)
    assert "keep<|im_end|>" in second.output_text


def test_penalties_are_echoed(server: LiveServer) -> None:
    """They are Open Responses' fields: always present, and stored with the response."""
    client = server.client()
    plain = client.responses.create(model="smollm2-135m", input="hi").to_dict()
    assert (plain["presence_penalty"], plain["frequency_penalty"]) == (0, 0)
    body = {"presence_penalty": -1.5, "frequency_penalty": 2, "top_k": 5, "min_p": 0.1, "repetition_penalty": 1.2}
    sent = client.responses.create(model="smollm2-135m", input="hi", extra_body=body)
    stored = client.responses.retrieve(sent.id).to_dict()
    assert (stored["presence_penalty"], stored["frequency_penalty"]) == (-1.5, 2)


def test_the_template_s_arguments_reach_the_prompt_and_its_count(server: LiveServer) -> None:
    client = server.client()
    extra = {"chat_template_kwargs": {"enable_thinking": False, "style": "日本語"}}
    shown = client.responses.create(model="smollm2-135m", input="[[show-prompt]]", extra_body=extra)
    assert '<|im_start|>template\n{"enable_thinking": false, "style": "日本語"}<|im_end|>' in shown.output_text
    counted = client.responses.input_tokens.count(model="smollm2-135m", input="[[show-prompt]]", extra_body=extra)
    assert shown.usage is not None
    assert counted.input_tokens == shown.usage.input_tokens


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("extension", "param"),
    [
        ({"stop": ["a", ""]}, "stop[1]"),
        ({"presence_penalty": 3}, "presence_penalty"),
        ({"logit_bias": {"5": 200}}, "logit_bias.5"),
        ({"logit_bias": {"5": 1, str(2**60): 1}}, f"logit_bias.{2**60}"),
        ({"chat_template_kwargs": {"chat_template": "{{ messages }}"}}, "chat_template_kwargs.chat_template"),
    ],
    ids=str,
)
def test_an_invalid_extension_is_refused_by_its_place(
    server: LiveServer, extension: dict[str, Any], param: str, stream: bool
) -> None:
    """Even where only the worker finds out: no stream opens."""
    with pytest.raises(BadRequestError) as refused:
        server.client().responses.create(model="smollm2-135m", input="hi", stream=stream, extra_body=extension)
    assert (refused.value.param, refused.value.code) == (param, "invalid_value")
