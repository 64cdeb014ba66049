"""A look-up finds the longest earlier place with the same tokens, the latest among equals."""

from hypothesis import given
from hypothesis import strategies as st

from inference.speculation.history import LONG_MATCH, SHORTEST_MATCH, TokenHistory

few_tokens = st.lists(st.integers(0, 3), max_size=60)


def match_by_hand(tokens: list[int]) -> tuple[int, int] | None:
    best = (0, 0)
    for end in range(1, len(tokens)):
        length = 0
        while length < min(end, LONG_MATCH) and tokens[end - 1 - length] == tokens[-1 - length]:
            length += 1
        best = max(best, (length, end))
    return best if best[0] >= SHORTEST_MATCH else None


@given(first=few_tokens, second=few_tokens)
def test_a_match_is_as_long_as_one_found_by_hand(first: list[int], second: list[int]) -> None:
    history = TokenHistory(first)
    history.extend(second)
    tokens = first + second
    match, expected = history.match(), match_by_hand(tokens)
    assert (match is None) == (expected is None)
    if match is not None and expected is not None:
        assert min(match.length, LONG_MATCH) == expected[0]
        length = min(match.length, match.end)
        assert tokens[match.end - length : match.end] == tokens[-length:]


def test_a_document_that_is_copied_wins_over_its_own_copy() -> None:
    """Entries that begin alike continue as in the original at this place, not as in the entry written last."""
    head = list(range(10, 20))
    original = [1, *head, 2, 1, *head, 3]
    copy = [1, *head, 2, 1, *head]
    history = TokenHistory([*original, 99, *copy])
    match = history.match()
    assert match is not None
    assert history.following(match, 1) == [3]


def test_what_reaches_the_end_is_repeated() -> None:
    history = TokenHistory([9, 1, 2, 1, 2])
    match = history.match()
    assert match is not None
    assert history.following(match, 5) == [1, 2, 1, 2, 1]


def test_truncated_tokens_are_forgotten() -> None:
    history = TokenHistory([1, 2, 7, 5])
    history.extend([1, 2])
    assert history.match() is not None
    history.truncate(4)
    assert len(history) == 4
    assert history.match() is None
