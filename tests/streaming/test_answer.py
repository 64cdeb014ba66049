"""An answer: chunks in, events out, and the object at the end."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.calls import Thinking
from inference.calls.tools import Tool
from inference.dialects.hermes import HermesParser
from inference.types import Chunk
from responses_api.protocol import usage
from responses_api.protocol.objects import Usage
from responses_api.protocol.objects.compaction import initial_compaction
from responses_api.streaming import Answer, CompactionBuilder, ResponseBuilder
from tests.streaming.streams import Events, check_grammar, check_items, parse
from tests.streaming.test_builder_properties import base

TEXT = 'Let me look.<tool_call>{"name": "look", "arguments": {"at": "it"}}</tool_call> Done.'


def answer() -> Answer:
    return Answer(ResponseBuilder(base()), parser=HermesParser([Tool(name="look", parameters={"type": "object"})]))


def chunks(text: str, cuts: list[int]) -> list[Chunk]:
    """The text as an engine might give it: a token for each piece."""
    places = [0, *sorted(cuts), len(text)]
    pieces = [text[first:last] for first, last in pairwise(places)]
    made = [Chunk(request_id="", text=piece, tokens=(number,)) for number, piece in enumerate(pieces)]
    return [Chunk(request_id="", started=True, cached_tokens=3), *made]


def used(made: Answer) -> Usage:
    return usage(
        input_tokens=5,
        cached_tokens=made.counts.cached,
        cache_write_tokens=0,
        output_tokens=made.counts.output,
        reasoning_tokens=made.reasoning_tokens,
    )


def ended(made: Answer) -> Events:
    rest = made.flush()
    return [*rest, *made.end("completed", message="", usage=used(made), completed_at=1)]


def without_deltas(events: Events) -> list[tuple[str, Any]]:
    """The events that must be the same however the text is cut."""
    kept = [event for event in events if not event["type"].endswith(".delta")]
    return [(event["type"], event.get("item")) for event in kept]


@given(st.lists(st.integers(0, len(TEXT)), max_size=8), st.data())
def test_the_same_text_gives_the_same_answer(cuts: list[int], data: st.DataObject) -> None:
    """However the engine cuts it, and however its chunks are gathered."""
    made, whole = answer(), answer()
    events: Events = [*made.open()]
    rest = chunks(TEXT, cuts)
    count = len(rest) - 1
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        events += made.feed(rest[:size])
        rest = rest[size:]
    expected = [*whole.open(), *whole.feed(chunks(TEXT, [])), *ended(whole)]
    events += ended(made)
    assert without_deltas(events) == without_deltas(expected)
    assert made.snapshot()["output"] == whole.snapshot()["output"]
    assert made.tokens == list(range(count))
    assert (made.counts.output, made.counts.cached, made.has_started) == (count, 3, True)
    parse(events)
    check_grammar(events)
    check_items(events)


def test_tokens_that_are_fed_together_give_one_delta() -> None:
    """On either side of markup, of which each piece is still counted for what it is."""
    made = Answer(ResponseBuilder(base()), parser=HermesParser(thinking=Thinking(opened=True)))
    made.open()
    events: Events = [*made.feed(chunks("One two.</think>Three four.", [4, 8, 16, 22]))]
    deltas = [event["delta"] for event in events if event["type"].endswith(".delta")]
    assert deltas == ["One two.", "Three four."]
    assert (made.reasoning_tokens, made.counts.output) == (3, 5)


@given(st.integers(0, 20))
def test_an_answer_that_is_fed_again_resumes_where_it_was(cut: int) -> None:
    """The same chunks give the same events, with the same ids and numbers."""
    made, again = answer(), answer()
    parts = chunks(TEXT, list(range(0, len(TEXT), 5)))
    before = [*made.open(), *made.feed(parts[:cut])]
    assert [*again.open(), *again.feed(parts[:cut])] == before
    assert again.tokens == made.tokens
    assert [*again.feed(parts[cut:]), *ended(again)] == [*made.feed(parts[cut:]), *ended(made)]


@pytest.mark.parametrize(("text", "cut"), [(TEXT, False), (TEXT[:60], True)])
def test_a_cut_call_is_recognised(text: str, *, cut: bool) -> None:
    made = answer()
    made.open()
    made.feed(chunks(text, []))
    made.flush()
    assert made.is_cut_in_call is cut


def test_an_end_that_cannot_be_stored_is_replaced_by_a_failure() -> None:
    """Open items end as incomplete, the object has no output, and numbers continue from the published ones."""
    made = answer()
    events: Events = [*made.open(), *made.feed(chunks("Hello", []))]
    made.end("completed", message="", usage=used(made), completed_at=1)
    events += made.fail_instead("Too large.", usage=None)
    check_grammar(events)
    assert (events[-3]["type"], events[-3]["item"]["status"]) == ("response.output_item.done", "incomplete")
    assert events[-1]["response"] == made.snapshot()
    assert (made.snapshot()["status"], made.snapshot()["output"]) == ("failed", [])


def test_a_compaction_generates_nothing_and_has_one_event() -> None:
    base = initial_compaction("cmp_1", created_at=1, model="m")
    made = Answer(CompactionBuilder(base))
    assert not made.is_generated
    assert made.open() == made.feed([Chunk(request_id="", finish="stop")]) == made.flush() == []
    (event,) = made.end("completed", message="", usage=used(made), completed_at=1)
    assert event["type"] == "response.compacted"
    assert event["response"] == {**base, "usage": used(made)}
