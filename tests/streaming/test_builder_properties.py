"""Any sequence of text, reasoning and calls with any end gives a stream that the SDK and the grammar accept."""

from collections.abc import Sequence
from typing import Any, Literal

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from responses_api.protocol import initial_response, parse_create, usage
from responses_api.protocol.objects import Response
from responses_api.streaming import Outcome, ResponseBuilder
from tests.protocol.references import open_responses_errors
from tests.streaming.steps import STEPS, Steps, Text, expected_output, stored_item, take
from tests.streaming.streams import (
    Events,
    check_grammar,
    check_items,
    check_open_responses,
    check_own_types,
    fold,
    open_responses_object,
)

OUTCOMES: st.SearchStrategy[Outcome] = st.sampled_from(["completed", "incomplete", "failed", "cancelled"])
USAGE = usage(input_tokens=9, output_tokens=3, cached_tokens=4, cache_write_tokens=5)


def base() -> Response:
    request = parse_create({"input": "hi", "instructions": "Be brief.", "metadata": {"a": "b"}})
    return initial_response(
        request, id="resp_1", created_at=1_700_000_000, model="m", temperature=1.0, top_p=1.0, store=True
    )


def seal(text: str) -> str:
    return f"sealed:{len(text)}"


def finish(builder: ResponseBuilder, outcome: Outcome) -> Events:
    if outcome == "failed":
        return [*builder.finish(outcome, error={"code": "server_error", "message": "The engine stopped."})]
    return [*builder.finish(outcome, usage=USAGE, completed_at=1_700_000_001)]


def build(
    steps: Steps,
    outcome: Outcome,
    *,
    queued: bool = False,
    compaction: tuple[int, int] | Literal[False] | None = False,
    sealed: bool = False,
) -> tuple[Events, Response]:
    builder = ResponseBuilder(base(), queued=queued, seal=seal if sealed else None)
    events: Events = [*builder.start()]
    if compaction is not False:
        events += builder.compaction("mlxr1.blob", tokens=compaction)
    for step in steps:
        events += take(builder, step)
    events += finish(builder, outcome)
    return events, builder.snapshot()


def texts(*deltas: str) -> list[Text]:
    return [Text(delta=delta) for delta in deltas]


@settings(max_examples=200, deadline=None)
@given(STEPS, OUTCOMES, st.booleans(), st.sampled_from([False, None, (900, 90)]), st.booleans())
def test_every_stream_is_whole(
    steps: Steps, outcome: Outcome, queued: bool, compaction: tuple[int, int] | Literal[False] | None, sealed: bool
) -> None:
    """Each event is valid, the stream folds to the stored object and follows the grammar, and nothing is lost."""
    events, stored = build(steps, outcome, queued=queued, compaction=compaction, sealed=sealed)
    check_own_types(events)
    check_grammar(events)
    check_items(events)
    check_open_responses(events)
    folded = fold(events)
    if outcome == "cancelled":  # its terminal event carries no object
        folded |= {"status": "cancelled", "usage": USAGE}
    else:
        assert events[-1]["response"] == stored
    assert folded == stored
    assert open_responses_errors("ResponseResource", open_responses_object(stored)) == []
    assert stored["status"] == outcome
    output = stored["output"] if compaction is False else stored["output"][1:]
    assert [stored_item(item) for item in output] == expected_output(steps, outcome)
    for item in output:
        if item["type"] == "reasoning":
            assert item.get("encrypted_content") == (seal(item["content"][0]["text"]) if sealed else None)


@settings(max_examples=50, deadline=None)
@given(STEPS, OUTCOMES)
def test_a_replay_gives_the_same_events_and_continues(steps: Steps, outcome: Outcome) -> None:
    """Two builders with the same input give the same events, ids and numbers included."""
    assert build(steps, outcome, sealed=True) == build(steps, outcome, sealed=True)


@settings(max_examples=50, deadline=None)
@given(STEPS, OUTCOMES)
def test_events_do_not_change_afterwards(steps: Steps, outcome: Outcome) -> None:
    """Neither later steps nor changes by a receiver affect them."""
    builder = ResponseBuilder(base(), queued=True)
    seen: list[tuple[Any, bytes]] = []

    def record(events: Sequence[Any]) -> None:
        seen.extend((event, orjson.dumps(event)) for event in events)

    record(builder.start())
    for step in steps:
        record(take(builder, step))
        builder.snapshot()["output"].clear()
        builder.snapshot()["metadata"]["a"] = "changed"
    record(finish(builder, outcome))
    assert all(orjson.dumps(event) == text for event, text in seen)
    stored = orjson.dumps(builder.snapshot())
    for event, _ in seen[:-1]:
        spoil(event)
    assert orjson.dumps(seen[-1][0]) == seen[-1][1]
    assert orjson.dumps(builder.snapshot()) == stored


def spoil(value: Any) -> None:
    """Change everything in a value that can be changed."""
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            spoil(inner)
    value.clear()


@settings(max_examples=50, deadline=None)
@given(STEPS)
def test_a_receiver_that_changes_its_events_changes_nothing_else(steps: Steps) -> None:
    """Not even the events of the open item."""
    builder = ResponseBuilder(base(), seal=seal)
    kept = [orjson.dumps(event) for event in build(steps, "completed", sealed=True)[0]]
    events = builder.start()
    seen = []
    for step in steps:
        for event in events:
            seen.append(orjson.dumps(event))
            spoil(event)
        events = take(builder, step)
    seen += [orjson.dumps(event) for event in events + finish(builder, "completed")]
    assert seen == kept


@settings(max_examples=50, deadline=None)
@given(STEPS)
def test_snapshot_is_what_would_be_stored_if_the_stream_stopped_now(steps: Steps) -> None:
    """The open item counts as cut and has all text so far; the ids are those of the stream."""
    builder = ResponseBuilder(base(), seal=seal)
    events = builder.start()
    for count, step in enumerate(steps, start=1):
        events += take(builder, step)
        snapshot = builder.snapshot()
        assert snapshot["status"] == "in_progress"
        assert snapshot["output"] == build(steps[:count], "incomplete", sealed=True)[1]["output"]
    ids = [event["item"]["id"] for event in events if event["type"] == "response.output_item.added"]
    assert [item["id"] for item in builder.snapshot()["output"]] == ids
