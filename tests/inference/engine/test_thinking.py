"""Thinking ends at its token limit: within one token, between characters, and only once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.engine.thinking import ThinkingWatch
from inference.scripted.script import Fail
from inference.scripted.thinking import limited
from inference.types import Constraint, Sampling, ThinkingLimit
from tests.inference.engine.test_batch import PROMPTS, SIZE, STOP, Bench, model
from tests.inference.vocabularies import byte_vocabulary

__all__ = ["model"]

CLOSING = tuple(b"\n</think>\n\n")


def limit(tokens: int, *, opened: bool = False) -> ThinkingLimit:
    return ThinkingLimit(tokens=tokens, start="<think>", end="</think>", opened=opened, closing=CLOSING)


def spell(token: int) -> bytes:
    return bytes((token,))


def answered(text: str, tokens: int, *, opened: bool = False) -> str:
    """A script of bytes under a limit."""
    return bytes(step for step in limited(iter(text.encode()), limit(tokens, opened=opened), spell)).decode()  # type: ignore[misc]


LETTERS = st.text(st.characters(exclude_characters="<\n", exclude_categories=["Cs"]), max_size=60)


@given(LETTERS, LETTERS, st.integers(0, 40), st.booleans())
def test_reasoning_is_cut_and_the_answer_is_not(thought: str, answer: str, tokens: int, opened: bool) -> None:
    """A byte is a token here; a started character is completed."""
    mark = "" if opened else "<think>"
    kept, end, after = answered(f"{mark}{thought}</think>{answer}", tokens, opened=opened).partition("</think>")
    assert end
    assert after.removeprefix("\n\n") == answer
    kept = kept.removeprefix(mark)
    assert thought.startswith(kept.removesuffix("\n"))
    is_cut = kept.endswith("\n")
    assert is_cut or kept == thought
    assert len(kept.encode()) <= max(0, tokens - len(mark)) + 3 + is_cut


def test_an_answer_that_does_not_think_is_left_alone() -> None:
    text = "No thinking here, and a <think> that comes late is the model's own."
    assert answered(text, 0) == text


def test_a_script_that_fails_while_it_thinks_fails() -> None:
    steps: list[Any] = [*b"<think>abc", Fail("So it is.")]
    assert list(limited(iter(steps), limit(8), spell))[-1] == Fail("So it is.")


def test_after_the_end_nothing_is_forced_any_more() -> None:
    watch = ThinkingWatch(limit(3, opened=True), spell)
    for token in b"abc":
        assert watch.forced is None
        watch.add(token)
    for token in CLOSING:
        assert watch.forced == token
        watch.add(token)
    assert watch.is_over
    for token in b"<think>for as long as it likes":
        watch.add(token)
        assert watch.forced is None


@pytest.mark.real_model
def test_the_engine_ends_it_within_the_batch(model: Any) -> None:
    """Even under a constraint; neighbours are unaffected."""
    bench = Bench(model, vocabulary=byte_vocabulary(SIZE, stop=STOP))
    free = Sampling(temperature=0.0, logit_bias=((STOP, -100.0),))
    grammar = 'start: thought /[\\n]{0,4}/ "[" /[a-z]{3}/ "]"\nthought[lazy]: /(?s:.*)<\\/think>/'
    lark = Constraint(kind="lark", text=grammar)
    bench.add("alone", PROMPTS[0], free, max_tokens=30)
    bench.finish()
    bench.add("thinks", PROMPTS[0], free, max_tokens=30, thinking=limit(5, opened=True))
    bench.add("both", PROMPTS[1], free, max_tokens=60, thinking=limit(6, opened=True), constraint=lark)
    bench.add("beside", PROMPTS[0], free, max_tokens=30)
    bench.finish()
    bench.batch.close()
    assert bench.tokens("beside") == bench.tokens("alone")
    thought = bench.tokens("thinks")
    assert thought[:5] == bench.tokens("alone")[:5]
    assert bytes(token % 256 for token in thought).find(b"\n</think>\n\n") in range(5, 9)
    assert bench.last("both").finish == "stop", bench.last("both")
    assert bench.text("both").partition("</think>")[2].strip()[0] == "["
