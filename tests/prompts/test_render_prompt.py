"""Fitting a prompt into the context."""

from typing import Any
from unittest.mock import patch

import pytest

from inference.scripted.tokenizer import VOCAB_SIZE, ScriptedTokenizer, decode
from inference.types import ModelInfo
from responses_api.errors import ContextLengthExceeded
from responses_api.protocol import input_items, parse_create
from responses_api.services.prompts.render_prompt import count_prompt, render_prompt

TOKENIZER = ScriptedTokenizer()


def info(context_length: int) -> ModelInfo:
    return ModelInfo(name="m", digest="d", context_length=context_length, vocab_size=VOCAB_SIZE)


def conversation(turns: int) -> list[dict[str, Any]]:
    """A developer's message, then questions and answers, then a last question."""
    messages: list[dict[str, Any]] = [{"role": "developer", "content": "Stay polite."}]
    for turn in range(turns):
        messages += [
            {"role": "user", "content": f"question {turn}"},
            {"role": "assistant", "content": f"answer {turn}"},
        ]
    return [*messages, {"role": "user", "content": "the last question"}]


def rendered(context_length: int, **options: Any) -> str:
    request = parse_create({"input": conversation(20), **options})
    prompt = render_prompt(
        request=request, history=[], sent=input_items(request), tokenizer=TOKENIZER, info=info(context_length)
    )
    assert len(prompt) < context_length
    return decode(prompt)


def test_without_truncation_a_long_prompt_is_refused() -> None:
    """The message gives both numbers; one free token is enough."""
    request = parse_create({"input": conversation(20)})
    tokens = count_prompt(request=request, history=[], owner="a", take=print, tokenizer=TOKENIZER, info=info(1 << 20))
    assert (
        count_prompt(request=request, history=[], owner="a", take=print, tokenizer=TOKENIZER, info=info(tokens + 1))
        == tokens
    )
    with pytest.raises(ContextLengthExceeded, match=str(tokens)):
        count_prompt(request=request, history=[], owner="a", take=print, tokenizer=TOKENIZER, info=info(tokens))


def test_a_prompt_that_there_is_no_memory_for_is_refused_with_the_setting() -> None:
    """The context is shorter than the model's own; the message gives both, and what to change."""
    request = parse_create({"input": conversation(20)})
    limited = info(1 << 20).limited_to(100)
    words = r"memory for 100 of the 1048576 tokens of the model's context \(RESPONSES_MEMORY_BYTES\)"
    with pytest.raises(ContextLengthExceeded, match=words):
        count_prompt(request=request, history=[], owner="a", take=print, tokenizer=TOKENIZER, info=limited)


@pytest.mark.parametrize("context_length", [60, 100, 150, 200, 250])
def test_truncation_keeps_the_longest_suffix_of_whole_turns(context_length: int) -> None:
    """Whole turns are left out from the start; instructions, developer messages and the last question stay."""
    text = rendered(context_length, truncation="auto", instructions="Be brief.", max_output_tokens=10)
    assert "Be brief." in text
    assert "Stay polite." in text
    assert "the last question" in text
    kept = [turn for turn in range(20) if f"question {turn}<" in text]
    assert kept == list(range(20 - len(kept), 20))
    assert [turn for turn in range(20) if f"answer {turn}<" in text] == kept
    longer = parse_create(
        {"input": [conversation(0)[0], *conversation(20)[-2 * len(kept) - 3 :]], "instructions": "Be brief."}
    )
    tokens = count_prompt(request=longer, history=[], owner="a", take=print, tokenizer=TOKENIZER, info=info(1 << 20))
    assert tokens > context_length - 10, "one more turn would have fitted"


def test_truncation_changes_nothing_that_fits() -> None:
    """The prompt is the same as without truncation."""
    assert rendered(1 << 20, truncation="auto") == rendered(1 << 20)


def test_one_turn_that_does_not_fit_is_refused_with_truncation_too() -> None:
    """Nothing is left to leave out."""
    request = parse_create({"input": "long " * 100, "truncation": "auto"})
    with pytest.raises(ContextLengthExceeded):
        count_prompt(request=request, history=[], owner="a", take=print, tokenizer=TOKENIZER, info=info(50))


@pytest.mark.parametrize("truncation", ["disabled", "auto"])
def test_a_far_too_long_prompt_is_not_tokenised(truncation: str) -> None:
    """Tokenising megabytes would delay other requests; a long history is left out by turns as usual."""
    huge = "x" * 1_000_000
    tokenised: list[int] = []

    def render(self: ScriptedTokenizer, messages: list[Any], **options: Any) -> tuple[int, ...]:
        tokenised.append(sum(len(message["content"]) for message in messages))
        return RENDER(self, messages, **options)

    request = parse_create({"input": huge, "truncation": truncation})
    turns = parse_create({"input": [*conversation(1)[:-1], {"role": "user", "content": huge}, *conversation(2)[1:]]})
    with patch.object(ScriptedTokenizer, "render", render):
        with pytest.raises(ContextLengthExceeded, match="more than 200 tokens"):
            count_prompt(request=request, history=[], owner="a", take=print, tokenizer=TOKENIZER, info=info(200))
        fitting = turns.model_copy(update={"truncation": "auto"})
        assert (
            count_prompt(request=fitting, history=[], owner="a", take=print, tokenizer=TOKENIZER, info=info(200)) <= 200
        )
    assert max(tokenised) < len(huge)


RENDER = ScriptedTokenizer.render
