"""Every dialect's parser gives the same pieces however its text is cut, and lets no markup into a message."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.calls import Thinking
from inference.calls.pieces import CallArguments, CallClosed, CallInput, CallOpened, Piece, Reasoning, Text, merged
from inference.dialects import DIALECTS
from tests.inference.dialects.corpus import CORPUS
from tests.inference.dialects.transcripts import PATCH, TOOLS, Transcript

MARKUP = sorted({mark for dialect in DIALECTS.values() for mark in (*dialect.parser.starts, *dialect.parser.ends)})
SHORT = 60
"""Characters of a text that is cut at every point."""


def run(transcript: Transcript, chunks: list[str]) -> list[Piece]:
    parser = DIALECTS[transcript.dialect].new_parser(transcript.tools, transcript.thinking)
    pieces = [piece for chunk in chunks for piece in parser.feed(chunk)]
    return merged([*pieces, *parser.flush()])


@pytest.mark.parametrize("transcript", CORPUS, ids=str)
class TestTranscripts:
    def test_whole(self, transcript: Transcript) -> None:
        assert run(transcript, [transcript.text]) == merged(transcript.pieces)

    def test_a_character_at_a_time(self, transcript: Transcript) -> None:
        assert run(transcript, list(transcript.text)) == merged(transcript.pieces)

    def test_cut_in_two_anywhere(self, transcript: Transcript) -> None:
        text = transcript.text
        step = max(1, len(text) // SHORT)
        for cut in range(0, len(text), step):
            assert run(transcript, [text[:cut], text[cut:]]) == merged(transcript.pieces)


@given(data=st.data(), transcript=st.sampled_from(CORPUS))
def test_random_cuts(data: st.DataObject, transcript: Transcript) -> None:
    text = transcript.text
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=8))
    edges = [0, *sorted(cuts), len(text)]
    assert run(transcript, [text[a:b] for a, b in pairwise(edges)]) == merged(transcript.pieces)


@given(data=st.data(), transcript=st.sampled_from(CORPUS))
def test_text_has_its_place_in_the_answer(data: st.DataObject, transcript: Transcript) -> None:
    """Each piece of text has its place in the answer, and each character comes once."""
    text = transcript.text
    cut = data.draw(st.integers(0, len(text)))
    said = [piece for piece in run(transcript, [text[:cut], text[cut:]]) if isinstance(piece, Text)]
    for piece in said:
        assert piece.text == "".join(text[first:end] for first, end in piece.spans)
    edges = [edge for piece in said for span in piece.spans for edge in span]
    assert edges == sorted(edges)


@given(data=st.data(), transcript=st.sampled_from(CORPUS))
def test_ended_anywhere(data: st.DataObject, transcript: Transcript) -> None:
    """A text that ends anywhere gives well-formed pieces, the beginning of those of the whole text."""
    end = data.draw(st.integers(0, len(transcript.text)))
    pieces = run(transcript, list(transcript.text[:end]))
    check_form(pieces)
    done = [piece for piece in pieces if isinstance(piece, CallOpened)]
    assert done == [piece for piece in transcript.pieces if isinstance(piece, CallOpened)][: len(done)]


FRAGMENTS = st.sampled_from(
    [
        *MARKUP, "<think>", "</think>", "{", "}", "[", "]", "(", ")", '"', "\\", ",", ":", "=", " ", "\n", "now", "rm",
        "1", "a", "é", "call:", "<function=", "<parameter=", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>",
        '{"name": "now", "arguments": {', "functions.now:0<|tool_call_argument_begin|>", "now[ARGS]{", "now(a=",
        "<|channel|>", "commentary to=functions.now", "<|message|>", "<|end|>", "<|start|>assistant", '<|"|>',
    ]
)  # fmt: skip


@given(
    dialect=st.sampled_from(list(DIALECTS)),
    parts=st.lists(FRAGMENTS, max_size=14),
    thinking=st.sampled_from([None, Thinking(), Thinking(opened=True)]),
)
def test_any_text(dialect: str, parts: list[str], thinking: Thinking | None) -> None:
    """No text breaks a parser: the pieces are well formed, the same character by character, and without markup."""
    text = "".join(parts)
    transcript = Transcript(dialect=dialect, name="any", text=text, thinking=thinking)
    pieces = run(transcript, [text])
    assert pieces == run(transcript, list(text))
    check_form(pieces)
    parser = DIALECTS[transcript.dialect].parser
    marks = (*parser.starts, *parser.ends)
    if thinking and marks:
        marks += (thinking.start, thinking.end)
    for piece in pieces:
        assert not isinstance(piece, Text) or not [mark for mark in marks if mark in piece.text]


def check_form(pieces: list[Piece]) -> None:
    """One call open at a time, each closed; a complete call's arguments are one JSON object."""
    opened: CallOpened | None = None
    arguments = ""
    for piece in pieces:
        match piece:
            case CallOpened():
                assert opened is None
                opened, arguments = piece, ""
            case CallArguments(text):
                assert opened is not None
                assert not opened.custom
                arguments += text
            case CallInput():
                assert opened is not None
                assert opened.custom
            case CallClosed(complete):
                assert opened is not None
                if complete and not opened.custom:
                    assert isinstance(json.loads(arguments), dict)
                opened = None
            case Text() | Reasoning():
                assert opened is None
                assert piece.text
    assert opened is None


@pytest.mark.parametrize("transcript", CORPUS, ids=str)
def test_no_markup_in_text(transcript: Transcript) -> None:
    parser = DIALECTS[transcript.dialect].parser
    if transcript.tools:
        for piece in run(transcript, list(transcript.text)):
            assert not isinstance(piece, Text) or not [m for m in (*parser.starts, *parser.ends) if m in piece.text]


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "harmony"])
def test_text_passes_at_once(dialect: str) -> None:
    """Text that cannot become markup is not held back, except white space at its end."""
    parser = DIALECTS[dialect].new_parser(TOOLS, Thinking())
    assert parser.feed("Hello") == [Text("Hello")]
    assert parser.feed(" my ") == [Text(" my")]
    assert parser.feed("dear") == [Text(" dear")]


def test_arguments_come_as_they_are_written() -> None:
    parser = DIALECTS["hermes"].new_parser(TOOLS)
    parser.feed('<tool_call>{"name": "get_weather", ')
    assert parser.feed('"arguments": {"city": "Pa') == [CallArguments('{"city": "Pa')]
    assert parser.feed("ris") == [CallArguments("ris")]


def test_raw_input_comes_as_it_is_written() -> None:
    parser = DIALECTS["qwen-xml"].new_parser((PATCH,))
    parser.feed("<function=apply_patch>\n<parameter=input>\n")
    assert parser.feed("*** Begin\n+") == [CallInput("*** Begin\n+")]


@pytest.mark.parametrize("dialect", list(DIALECTS))
def test_deep_nesting_is_refused_not_a_crash(dialect: str) -> None:
    text = {
        "hermes": '<tool_call>{"name": "now", "arguments": {"a": ',
        "llama": '{"name": "now", "parameters": {"a": ',
        "mistral": '[TOOL_CALLS]now[ARGS]{"a": ',
        "kimi": '<|tool_calls_section_begin|><|tool_call_begin|>now:0<|tool_call_argument_begin|>{"a": ',
        "pythonic": "[now(a=",
        "gemma": "<|tool_call>call:now{a:",
        "harmony": '<|channel|>commentary to=functions.now<|message|>{"a": ',
    }.get(dialect)
    if text is not None:
        transcript = Transcript(dialect=dialect, name="deep", text=text + "[" * 10_000)
        assert run(transcript, [transcript.text])[-1] == CallClosed(complete=False)


@pytest.mark.parametrize(
    "value", ['"' + "[" * 100_000 + '"', '"' + '{\\"a\\":' * 900 + '"', "1" * 5000], ids=["list", "object", "number"]
)
def test_arguments_that_can_t_be_read_close_the_call_as_incomplete_or_drop_it(value: str) -> None:
    parser = DIALECTS["hermes"].new_parser(TOOLS)
    pieces = parser.feed(f'<tool_call>\n{{"name": "get_weather", "arguments": {value}}}\n</tool_call>after')
    assert CallClosed(complete=True) not in pieces
    assert [piece.text for piece in [*pieces, *parser.flush()] if isinstance(piece, Text)] == ["after"]
