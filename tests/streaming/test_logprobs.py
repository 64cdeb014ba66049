"""Log-probabilities are assigned to the text that their tokens spell."""

from inference.calls import Thinking
from inference.dialects import DIALECTS
from inference.types import Chunk, TokenLogprob
from responses_api.streaming import ResponseBuilder
from responses_api.streaming.answer import Answer
from responses_api.streaming.logprobs import LogprobAligner
from tests.streaming.test_builder_properties import base


def aligner(*tokens: bytes) -> LogprobAligner:
    """An aligner for these tokens, each with `x` as its only alternative."""
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


def test_markup_has_none_and_a_partly_markup_token_has_some() -> None:
    """The token `>Hi` spells the end of a marker and a text."""
    assert spelled(aligner(b"<think", b">Hi", b"!").take([(7, 10)])) == [("Hi", -1.0), ("!", -2.0)]


def test_a_text_that_continues_resumes_where_it_was() -> None:
    found = aligner(b"ab", b"cd")
    assert spelled(found.take([(0, 1)])) == [("a", 0.0)]
    assert spelled(found.take([(1, 4)])) == [("b", 0.0), ("cd", -1.0)]


def test_a_character_of_several_tokens_has_all_their_entries() -> None:
    """Even where the bytes are not a valid character."""
    first, second = "é".encode()[:1], "é".encode()[1:]
    entries = aligner(first, second, b"!").take([(0, 1)])
    assert [entry["bytes"] for entry in entries] == [list(first), list(second)]
    assert [entry["bytes"] for entry in aligner(b"\xc3", b"(").take([(0, 1), (1, 2)])] == [[0xC3], [0x28]]


def test_a_part_whose_bytes_have_not_come_has_no_entries() -> None:
    assert aligner(b"ab").take([(0, 5)]) == []


def test_an_answer_s_text_has_them_and_its_reasoning_is_counted() -> None:
    """Reasoning has none, as it is not the text of a message."""
    parser = DIALECTS["hermes"].new_parser((), Thinking())
    answer = Answer(ResponseBuilder(base()), parser=parser, logprobs=True)
    answer.open()
    events = [*answer.add_compaction("blob", tokens=None)]
    pieces = ["<think>", "Hm", "</think>", "Ye", "s"]
    for number, text in enumerate(pieces):
        entry = TokenLogprob(token=text.encode(), logprob=-float(number), top=())
        events += answer.feed([Chunk(request_id="", text=text, tokens=(number,), logprobs=(entry,))])
    events += answer.flush()
    deltas = [event for event in events if event["type"] == "response.output_text.delta"]
    assert [spelled(event["logprobs"]) for event in deltas] == [[("Ye", -3.0)], [("s", -4.0)]]
    assert answer.snapshot()["output"][0]["type"] == "compaction"
    assert answer.tokens == [0, 1, 2, 3, 4]
