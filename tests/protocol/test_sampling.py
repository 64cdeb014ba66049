"""Our sampling extensions: what a request may contain, and what reaches the engine."""

from typing import Any

import pytest

from inference.types import Sampling
from responses_api.errors import ApiError, InvalidValue
from responses_api.protocol import parse_create
from responses_api.worker.generation.read_sampling import read_sampling

ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"stop": ""}, "stop"),
    ({"stop": 5}, "stop"),
    ({"stop": {}}, "stop"),
    ({"stop": "x" * 1025}, "stop"),
    ({"stop": ["a", ""]}, "stop[1]"),
    ({"stop": ["a", None]}, "stop[1]"),
    ({"stop": ["a", ["b"]]}, "stop[1]"),
    ({"stop": ["a", "\0"]}, "stop[1]"),
    ({"stop": list("abcde")}, "stop"),
    ({"top_k": -1}, "top_k"),
    ({"top_k": 1.0}, "top_k"),
    ({"top_k": True}, "top_k"),
    ({"top_k": 2**31}, "top_k"),
    ({"min_p": -0.01}, "min_p"),
    ({"min_p": 1.01}, "min_p"),
    ({"min_p": "0.1"}, "min_p"),
    ({"presence_penalty": 2.1}, "presence_penalty"),
    ({"presence_penalty": "1"}, "presence_penalty"),
    ({"frequency_penalty": -2.1}, "frequency_penalty"),
    ({"frequency_penalty": False}, "frequency_penalty"),
    ({"repetition_penalty": 0}, "repetition_penalty"),
    ({"repetition_penalty": 11}, "repetition_penalty"),
    ({"logit_bias": []}, "logit_bias"),
    ({"logit_bias": {"5": 100.5}}, "logit_bias.5"),
    ({"logit_bias": {"5": -101}}, "logit_bias.5"),
    ({"logit_bias": {"5": None}}, "logit_bias.5"),
    ({"logit_bias": {"5": True}}, "logit_bias.5"),
    ({"logit_bias": {"hello": 1}}, "logit_bias.hello"),
    ({"logit_bias": {"": 1}}, "logit_bias."),
    ({"logit_bias": {"-1": 1}}, "logit_bias.-1"),
    ({"logit_bias": {"05": 1}}, "logit_bias.05"),
    ({"logit_bias": {"\u0665": 1}}, "logit_bias.\u0665"),
    ({"logit_bias": {"1" * 20: 1}}, "logit_bias." + "1" * 20),
    ({"logit_bias": {str(n): 1 for n in range(1025)}}, "logit_bias"),
    ({"chat_template_kwargs": []}, "chat_template_kwargs"),
    ({"chat_template_kwargs": "enable_thinking"}, "chat_template_kwargs"),
    ({"chat_template_kwargs": {"a b": 1}}, "chat_template_kwargs.a b"),
    ({"chat_template_kwargs": {"": 1}}, "chat_template_kwargs."),
    ({"chat_template_kwargs": {"a": "x" * 17_000}}, "chat_template_kwargs"),
    ({"chat_template_kwargs": {f"a{n}": 1 for n in range(33)}}, "chat_template_kwargs"),
    *(
        ({"chat_template_kwargs": {"fine": 1, name: value}}, f"chat_template_kwargs.{name}")
        for name, value in {
            "add_generation_prompt": False, "chat_template": "{{ 1 }}", "eos_token": "", "messages": [], "self": 1,
            "tokenize": True, "tools": [],
        }.items()
    ),
]  # fmt: skip


@pytest.mark.parametrize(("extensions", "param"), ERRORS, ids=lambda value: str(value)[:60])
def test_an_error_names_its_place(extensions: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse_create({"input": "hi", **extensions})
    assert (caught.value.param, caught.value.code, caught.value.status) == (param, "invalid_value", 400)
    assert caught.value.message.startswith(f"`{param}` ")
    assert len(caught.value.message) < 300


ALL: dict[str, Any] = {
    "stop": ["a", "b", "c", "€" * 1024], "top_k": 40, "min_p": 0.05, "presence_penalty": -2, "frequency_penalty": 2.0,
    "repetition_penalty": 1.1, "logit_bias": {"0": -100, "49151": 100, "7": 0.5}, "seed": 3,
    "chat_template_kwargs": {"enable_thinking": False, "documents": [{"title": "a"}], "budget": None},
}  # fmt: skip


def test_everything_reaches_the_engine() -> None:
    request = parse_create({"input": "hi", **ALL})
    assert request.stop_strings == ("a", "b", "c", "€" * 1024)
    assert request.chat_template_kwargs == ALL["chat_template_kwargs"]
    assert read_sampling(request, temperature=0.5, top_p=0.9, vocab_size=49152) == Sampling(
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        min_p=0.05,
        presence_penalty=-2,
        frequency_penalty=2,
        repetition_penalty=1.1,
        logit_bias=((0, -100), (49151, 100), (7, 0.5)),
        seed=3,
    )


def test_neutral_values_have_no_effect() -> None:
    """Absent, null and neutral values reach the engine as the same."""
    neutral = {"stop": [], "top_k": 0, "min_p": 0, "presence_penalty": 0, "repetition_penalty": 1, "logit_bias": {}}
    for body in ({}, dict.fromkeys(ALL), neutral):
        request = parse_create({"input": "hi", **body})
        assert request.stop_strings == ()
        assert read_sampling(request, temperature=1.0, top_p=1.0, vocab_size=10) == Sampling()


def test_one_stop_string_may_come_without_an_array() -> None:
    assert parse_create({"input": "hi", "stop": "\n"}).stop_strings == ("\n",)


def test_a_bias_on_an_unknown_token_names_it() -> None:
    request = parse_create({"input": "hi", "logit_bias": {"9": 1, "10": 1, "11": 1}})
    with pytest.raises(InvalidValue, match="from 0 to 9") as caught:
        read_sampling(request, temperature=1.0, top_p=1.0, vocab_size=10)
    assert caught.value.param == "logit_bias.11"
