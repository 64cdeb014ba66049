"""Summaries in passes, without an engine."""

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.scripted.tokenizer import ScriptedTokenizer, decode
from responses_api.errors import ContextLengthExceeded
from responses_api.interruptions import Check, Interrupted, unchecked
from responses_api.protocol import input_items, parse_create
from responses_api.services.prompts.renderer import Renderer
from responses_api.worker.generation.summarise_history import Summariser

TOKENIZER = ScriptedTokenizer()


def summariser(
    turns: list[str],
    *,
    window: int,
    instructions: str | None = None,
    keep_tokens: int = 1,
    check: Check = unchecked,
) -> Summariser:
    messages: list[dict[str, Any]] = []
    for number, text in enumerate(turns):
        messages.append({"role": "assistant" if number % 2 else "user", "content": text})
    items = input_items(parse_create({"input": [*messages, {"role": "user", "content": "last"}]}))
    return Summariser(
        items=items,
        renderer=Renderer(tokenizer=TOKENIZER, instructions=instructions or "", check=check),
        window=window,
        max_tokens=1024,
        keep_tokens=keep_tokens,
    )


def counted_renderings() -> Any:
    """Counts how often the tokenizer renders."""
    return patch.object(ScriptedTokenizer, "render", autospec=True, side_effect=ScriptedTokenizer.render)


def run(compacting: Summariser, summary: str = "short") -> list[str]:
    """All prompts that it requests, each answered with this summary."""
    prompts = []
    while (prompt := compacting.prompt()) is not None:
        prompts.append(decode(prompt))
        compacting.take(summary)
    return prompts


def test_a_history_that_fits_is_summarised_at_once_and_unchanged() -> None:
    """So its prompt starts like that of the turns before."""
    compacting = summariser(["one two three four five six seven eight", "two"] * 5, window=100_000)
    [prompt] = run(compacting)
    before = decode(TOKENIZER.render([{"role": "user", "content": "one two three four five six seven eight"}]))
    assert prompt.startswith(before[: before.index("eight") + 5])
    assert compacting.result().summary == "short"
    assert [item["content"][0]["text"] for item in compacting.result().items] == ["last"]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("ab cdé", min_size=1, max_size=400), min_size=3, max_size=12), st.integers(260, 900))
def test_a_history_that_does_not_fit_is_summarised_in_passes(turns: list[str], window: int) -> None:
    """Each fits into the window, they cover all of the text, and each has the summary of those before."""
    compacting = summariser(turns, window=window)
    shown = []
    while (prompt := compacting.prompt()) is not None:
        assert len(prompt) + compacting.max_tokens <= window
        shown.append(decode(prompt))
        compacting.take(f"summary {len(shown)}")
    if len(shown) > 1:
        assert all(f"summary {number}" in text for number, text in enumerate(shown) if number)
        pieces = [text.split("This part:\n")[-1].split("only the summary.\n\n")[-1].split("<")[0] for text in shown]
        said = "".join("".join(pieces).replace("User:", "").replace("Assistant:", "").split())
        assert said == "".join("".join(turns).split())


def test_a_long_history_takes_few_renderings() -> None:
    """The piece that fits is found by bisection, not character by character."""
    compacting = summariser(["some words " * 20_000], window=2000)
    with counted_renderings() as counted:
        prompt = compacting.prompt()
    assert prompt is not None
    assert len(prompt) + compacting.max_tokens > 0.9 * 2000
    assert counted.call_count < 40


def test_a_history_below_the_threshold_is_rendered_once() -> None:
    """Nothing is split unnecessarily."""
    compacting = summariser(["words"] * 20, window=100_000)
    with counted_renderings() as counted:
        assert compacting.tokens
        assert compacting.tokens
    assert counted.call_count == 1


def test_a_window_that_is_too_small_is_refused() -> None:
    with pytest.raises(ContextLengthExceeded, match="200"):
        run(summariser(["word " * 100] * 3, window=200, instructions="word " * 200))


@pytest.mark.parametrize("summary", ["", "   ", "longer than the history " * 50])
def test_a_summary_that_would_not_shorten_leaves_the_items_whole(summary: str) -> None:
    compacting = summariser(["one", "two"], window=100_000)
    run(compacting, summary)
    assert compacting.result().summary == ""
    assert len(compacting.result().items) == 3


def test_nothing_older_takes_no_generation() -> None:
    compacting = summariser([], window=100_000)
    assert run(compacting) == []
    assert len(compacting.result().items) == 1


@pytest.mark.parametrize("keep_tokens", [1, 1000, 2**31 - 1])
def test_a_history_of_many_items_takes_few_renderings(keep_tokens: int) -> None:
    """However much is kept; and none once nobody waits for it."""
    compacting = summariser(["a"] * 6000, window=100_000, keep_tokens=keep_tokens)
    with counted_renderings() as counted:
        run(compacting)
        compacting.result()
    assert counted.call_count < 40


def test_it_ends_between_two_steps_when_nobody_waits() -> None:
    checks = iter([None] * 5)

    def check() -> None:
        if next(checks, True):
            raise Interrupted

    compacting = summariser(["some words " * 100] * 600, window=2000, check=check)
    with counted_renderings() as counted, pytest.raises(Interrupted):
        run(compacting)
    assert counted.call_count <= 5


def test_a_history_that_would_take_too_many_passes_is_refused_before_the_first() -> None:
    compacting = summariser(["some words " * 20_000] * 4, window=600)
    with pytest.raises(ContextLengthExceeded, match="passes"):
        compacting.prompt()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("ab cdé", min_size=1, max_size=200), min_size=1, max_size=12))
def test_the_limit_of_a_summary_is_below_what_it_replaces(turns: list[str]) -> None:
    """A summary cut there is shorter; without room for one, nothing is generated."""
    compacting = summariser(turns, window=100_000)
    summary = " words" * compacting.max_tokens
    prompts = run(compacting, summary)
    assert bool(prompts) == compacting.can_shorten
    assert (compacting.result().summary == summary.strip()) == bool(prompts)


def test_a_far_too_long_history_reaches_a_threshold_without_being_counted() -> None:
    compacting = summariser(["some words " * 100_000], window=1000)
    with counted_renderings() as counted:
        assert compacting.reaches(900)
    assert counted.call_count == 0
    assert compacting.tokens > 200_000
