"""Counting: `/responses/input_tokens` gives the later `usage.input_tokens`."""

from typing import Any

import pytest
from openai import BadRequestError, NotFoundError

from tests.live.client import check_envelope
from tests.live.server import LiveServer

INPUTS: list[dict[str, Any]] = [
    {"input": "How long is this?"},
    {"input": "日本語 👩‍👩‍👧‍👦", "instructions": "Count the characters."},
    {
        "input": [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "two"},
            {"role": "user", "content": ""},
        ]
    },
    {"input": [{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]}]},
]


@pytest.mark.parametrize("asked", INPUTS, ids=lambda asked: str(asked)[:30])
def test_the_count_is_the_usage(server: LiveServer, asked: dict[str, Any]) -> None:
    """For every form of input, on every web process."""
    for web in range(server.web):
        client = server.client(web=web)
        counted = client.responses.input_tokens.count(model="smollm2-135m", **asked)
        used = client.responses.create(model="smollm2-135m", **asked)
        assert used.usage is not None
        assert counted.input_tokens == used.usage.input_tokens
        assert counted.object == "response.input_tokens"


def test_whatever_create_takes_can_be_counted(server: LiveServer) -> None:
    """The unchanged body of a create request; fields that don't count are checked too."""
    body = {
        "input": "How long is this?", "max_output_tokens": 5, "temperature": None, "store": False, "top_k": 5,
        "stream": False, "metadata": {"a": "b"}, "include": ["reasoning.encrypted_content"], "user": "somebody",
    }  # fmt: skip
    with server.http() as http:
        used = http.post("/responses", json=body).json()["usage"]["input_tokens"]
        for more in ({}, {"stream": True}, {"background": True, "store": True}):
            counted = http.post("/responses/input_tokens", json=body | more)
            assert counted.json() == {"object": "response.input_tokens", "input_tokens": used}


def test_a_chain_and_its_replay_count_alike(server: LiveServer) -> None:
    """A history counts the same by `previous_response_id` and sent whole."""
    client = server.client()
    first = client.responses.create(model="smollm2-135m", input="first question")
    chained = client.responses.input_tokens.count(
        model="smollm2-135m", input="second question", previous_response_id=first.id
    )
    replayed = client.responses.input_tokens.count(
        model="smollm2-135m",
        input=[
            {"role": "user", "content": "first question"},
            {"role": "assistant", "content": first.output_text},
            {"role": "user", "content": "second question"},
        ],
    )
    assert chained.input_tokens == replayed.input_tokens


def test_an_invalid_count_is_refused(server: LiveServer) -> None:
    """With the errors of a create request, and one for parameters that have no effect here."""
    client = server.client()
    with pytest.raises(NotFoundError):
        client.responses.input_tokens.count(model="no-such-model", input="a")
    with pytest.raises(BadRequestError) as refused:
        client.responses.input_tokens.count(model="smollm2-135m", input="a", previous_response_id="resp_unknown")
    assert refused.value.code == "previous_response_not_found"
    with server.http() as http:
        path = "/responses/input_tokens"
        check_envelope(http.post(path, json={"input": "a", "streams": True}), 400, "unknown_parameter", "streams")
        check_envelope(http.post(path, json={"input": "a", "top_k": -1}), 400, "invalid_value", "top_k")
        check_envelope(http.post(path, json={"input": "a " * 140_000}), 400, "context_length_exceeded", "input")
        check_envelope(http.post(path, content=b"{", headers={"content-type": "application/json"}), 400, "invalid_json")
        check_envelope(http.get(path), 405, "method_not_allowed")


def test_far_too_long_input_is_refused_at_once(server: LiveServer) -> None:
    """By its bytes and by its number of items, before anything is tokenised."""
    with server.http() as http:
        longest = http.post("/responses/input_tokens", json={"input": "word " * 6_000_000})
        check_envelope(longest, 413, "request_too_large", param="input")
        for path, words in (("/responses", 6_000_000), ("/responses/input_tokens", 1_500_000)):
            long = http.post(path, json={"input": "word " * words})
            check_envelope(long, 400, "context_length_exceeded", param="input")
            many = http.post(path, json={"input": [{"role": "user", "content": ""}] * 20_001})
            check_envelope(many, 400, "invalid_value", param="input")
            assert "20000" in many.json()["error"]["message"]
