"""Log-probabilities go to the text that their tokens spell."""

from inference.types import TokenLogprob
from responses_api.streaming.logprobs import LogprobAligner


def aligner(*tokens: bytes) -> LogprobAligner:
    """An aligner that has these tokens, each with the one other token `x`."""
    found = LogprobAligner()
    found.add(
        TokenLogprob(token=token, logprob=-float(number), top=((b"x", -9.0),)) for number, token in enumerate(tokens)
    )
    return found


def spelled(entries: list) -> list[tuple[str, float]]:
    return [(entry["token"], entry["logprob"]) for entry in entries]


def test_each_token_of_a_text_has_an_entry_with_its_bytes_and_alternatives() -> None:
    entries = aligner(b"Hello", b" you").take([(0, 9)])
    assert spelled(entries) == [("Hello", 0.0), (" you", -1.0)]
    assert entries[0]["bytes"] == list(b"Hello")
    assert entries[0]["top_logprobs"] == [{"token": "x", "bytes": [120], "logprob": -9.0}]


def test_markup_has_none_and_of_a_token_that_is_partly_markup_the_text_has() -> None:
    """The token `>Hi` spells the end of a marker and a text."""
    assert spelled(aligner(b"<think", b">Hi", b"!").take([(7, 10)])) == [("Hi", -1.0), ("!", -2.0)]


def test_a_text_that_goes_on_takes_up_where_it_was() -> None:
    found = aligner(b"ab", b"cd")
    assert spelled(found.take([(0, 1)])) == [("a", 0.0)]
    assert spelled(found.take([(1, 4)])) == [("b", 0.0), ("cd", -1.0)]


def test_a_character_of_several_tokens_has_all_of_them() -> None:
    """Also where bytes are no character: each stands for itself."""
    first, second = "é".encode()[:1], "é".encode()[1:]
    entries = aligner(first, second, b"!").take([(0, 1)])
    assert [entry["bytes"] for entry in entries] == [list(first), list(second)]
    assert [entry["bytes"] for entry in aligner(b"\xc3", b"(").take([(0, 1), (1, 2)])] == [[0xC3], [0x28]]


def test_a_part_whose_bytes_have_not_come_has_no_entries() -> None:
    assert aligner(b"ab").take([(0, 5)]) == []
