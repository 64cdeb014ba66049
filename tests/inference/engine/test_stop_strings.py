"""Stop strings end the text at one place, wherever the text is cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.engine.stop_strings import StopStrings

LETTERS = st.text("ab€", max_size=12)
"""Few characters, so that stop strings overlap themselves, each other and the text's ends."""
STOPS = st.lists(st.text("ab€", min_size=1, max_size=5), min_size=1, max_size=4)


def before_stop(text: str, stops: list[str]) -> tuple[str, bool]:
    """The text before the first complete stop string, by looking at every place."""
    for end in range(1, len(text) + 1):
        ending = [stop for stop in stops if text[:end].endswith(stop)]
        if ending:
            return text[: end - max(map(len, ending))], True
    return text, False


def run(pieces: list[str], stops: list[str]) -> tuple[list[str], bool]:
    matcher = StopStrings(stops)
    out = [matcher.add(piece) for piece in pieces]
    return [*out, matcher.flush()], matcher.is_complete


@given(text=LETTERS, stops=STOPS)
def test_every_split_gives_the_text_before_the_stop(text: str, stops: list[str]) -> None:
    """In two at each point, and character by character."""
    wanted = before_stop(text, stops)
    splits = [[text[:i], text[i:]] for i in range(len(text) + 1)]
    for pieces in [*splits, list(text)]:
        out, found = run(pieces, stops)
        assert ("".join(out), found) == wanted
    assert not any(stop in wanted[0] for stop in stops)


@given(text=LETTERS, stops=STOPS, cuts=st.lists(st.integers(0, 12), max_size=6))
def test_any_pieces_give_the_text_before_the_stop(text: str, stops: list[str], cuts: list[int]) -> None:
    edges = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    out, found = run([text[a:b] for a, b in pairwise(edges)], stops)
    assert ("".join(out), found) == before_stop(text, stops)


@given(text=LETTERS, stops=STOPS)
def test_no_more_is_held_back_than_may_become_a_stop(text: str, stops: list[str]) -> None:
    matcher = StopStrings(stops)
    out = "".join(matcher.add(letter) for letter in text)
    if not matcher.is_complete:
        held = text[len(out) :]
        assert held == "" or any(stop.startswith(held) for stop in stops)
        assert not any(stop.startswith(text[i:]) for stop in stops for i in range(len(out)))


def test_without_stops_text_goes_straight_through() -> None:
    assert run(["a", "", "b"], []) == (["a", "", "b", ""], False)


@pytest.mark.parametrize("length", [1000, 100_000])
def test_the_worst_stop_string_is_followed_over_a_long_text(length: int) -> None:
    """With repetition, a search from every character would take minutes."""
    matcher = StopStrings(["a" * length + "b"])
    for _ in range(20):
        matcher.add("a" * (length // 10))
    assert matcher.add("b") == ""
    assert matcher.is_complete
