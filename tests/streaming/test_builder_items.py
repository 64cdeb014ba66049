"""The items of a stream by kind: the events that open and close them, and their content."""

from typing import Any

import pytest

from responses_api.ids import derived_id
from responses_api.protocol.objects.items import Logprob, TokenLogprob
from responses_api.streaming import Outcome, ResponseBuilder
from tests.streaming.steps import Call, Reasoning, Step, Text
from tests.streaming.streams import Events
from tests.streaming.test_builder_properties import base, build, finish, seal, texts


def token(text: str) -> Logprob:
    entry: TokenLogprob = {"token": text, "logprob": -0.5, "bytes": list(text.encode())}
    return {**entry, "top_logprobs": [entry.copy()]}


def items(*steps: Step, outcome: Outcome = "completed", sealed: bool = False) -> list[Any]:
    return [*build(steps, outcome, sealed=sealed)[1]["output"]]


def content(*steps: Step, outcome: Outcome = "completed") -> Events:
    """The events between those that begin the stream and those that end it."""
    return [event for event in build(steps, outcome)[0] if "output_index" in event]


def kinds(events: Events) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


def test_reasoning_item() -> None:
    """One part, also in both events of the part; the text is in reasoning events; `summary` stays empty."""
    events = content(Reasoning(delta="Let me"), Reasoning(delta=" see."), *texts("Yes."))[:7]
    part = {"type": "reasoning_text", "text": "Let me see."}
    item: dict[str, Any] = {
        "id": derived_id("rs_", "resp_1", 0),
        "type": "reasoning",
        "summary": [],
    }
    assert kinds(events) == [
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
    ]
    assert events[0]["item"] == {**item, "status": "in_progress", "content": []}
    assert events[1]["part"] == {**part, "text": ""}
    assert (events[4]["text"], events[5]["part"]) == ("Let me see.", part)
    assert events[6]["item"] == {**item, "status": "completed", "content": [part]}


def test_reasoning_is_sealed_on_request() -> None:
    """Once the item is done, even if it was cut."""
    events, stored = build([Reasoning(delta="Hm.")], "incomplete", sealed=True)
    added, done = [event["item"] for event in events if "item" in event]
    assert "encrypted_content" not in added
    assert done["encrypted_content"] == seal("Hm.")
    assert stored["output"] == [done]
    assert done["status"] == "incomplete"


def test_an_item_is_sealed_once() -> None:
    """The event and the stored item have the same blob, even if the seal is random."""
    seals = iter(range(9))
    builder = ResponseBuilder(base(), seal=lambda text: f"{text}{next(seals)}")
    builder.start()
    builder.reasoning("Hm.")
    events: Events = [*builder.text("Yes."), *finish(builder, "completed")]
    [done] = [event["item"] for event in events if event.get("item", {}).get("type") == "reasoning"]
    assert builder.snapshot()["output"][0] == events[-1]["response"]["output"][0] == done


def test_answer_after_reasoning_and_reasoning_after_an_answer_are_new_items() -> None:
    output = items(Reasoning(delta="a"), *texts("b", "c"), Reasoning(delta="d"), *texts("e"))
    assert [item["type"] for item in output] == ["reasoning", "message", "reasoning", "message"]
    assert [item["content"][0]["text"] for item in output] == ["a", "bc", "d", "e"]


def test_completed_answer_of_reasoning_alone_ends_with_an_empty_message() -> None:
    reasoning, message = items(Reasoning(delta="Hm."))
    assert (reasoning["type"], reasoning["status"]) == ("reasoning", "completed")
    assert (message["type"], message["content"][0]["text"]) == ("message", "")
    assert [item["type"] for item in items(Reasoning(delta="Hm."), outcome="incomplete")] == ["reasoning"]


def test_function_call() -> None:
    """Arguments keep their text; a replay gives the call the same `call_id`."""
    events = content(Call(name="f", deltas=('{"a"', "", ":1}")))
    item = {
        "id": derived_id("fc_", "resp_1", 0),
        "type": "function_call",
        "call_id": derived_id("call_", "resp_1", 0),
        "name": "f",
    }
    assert kinds(events) == [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ]
    assert events[0]["item"] == {**item, "status": "in_progress", "arguments": ""}
    assert events[3]["arguments"] == '{"a":1}'
    assert events[4]["item"] == {**item, "status": "completed", "arguments": '{"a":1}'}


def test_function_call_without_arguments_has_an_empty_object() -> None:
    """By a delta, so that deltas still concatenate to the arguments. A cut call has no arguments."""
    events = content(Call(name="f"))
    assert [event["delta"] for event in events if "delta" in event] == ["{}"]
    assert events[-1]["item"]["arguments"] == events[-2]["arguments"] == "{}"
    assert items(Call(name="f", end="cut"))[0]["arguments"] == ""


def test_custom_tool_call() -> None:
    """Any text is an input, even an empty one."""
    events = content(Call(name="patch", custom=True, deltas=("*** Begin",)))
    assert kinds(events) == [
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
    ]
    assert events[-1]["item"] == {
        "id": derived_id("ctc_", "resp_1", 0),
        "type": "custom_tool_call",
        "status": "completed",
        "call_id": derived_id("call_", "resp_1", 0),
        "name": "patch",
        "input": "*** Begin",
    }
    empty = content(Call(name="patch", custom=True))
    assert kinds(empty) == ["output_item.added", "custom_tool_call_input.done", "output_item.done"]
    assert empty[1]["input"] == ""


@pytest.mark.parametrize("custom", [False, True])
def test_namespace_is_there_only_when_there_is_one(custom: bool) -> None:
    plain, spaced = items(Call(name="f", custom=custom), Call(name="f", namespace="mail", custom=custom))
    assert "namespace" not in plain
    assert spaced["namespace"] == "mail"


def test_answer_that_is_a_call_has_no_message() -> None:
    """Neither has one whose call was cut. Parallel calls have different `call_id`s."""
    calls = items(Call(name="f"), Call(name="f"), Call(name="g", custom=True))
    assert [item["type"] for item in calls] == ["function_call", "function_call", "custom_tool_call"]
    assert len({item["call_id"] for item in calls}) == 3
    assert [item["type"] for item in items(Call(name="f", end="cut"))] == ["function_call"]


@pytest.mark.parametrize("custom", [False, True])
@pytest.mark.parametrize("end", ["cut", "left open"])
@pytest.mark.parametrize("outcome", ["completed", "incomplete", "failed", "cancelled"])
def test_cut_call_has_no_done_event_of_its_text(custom: bool, end: Any, outcome: Outcome) -> None:
    """So that nobody runs it, however the response ends; the item keeps its partial text."""
    events = content(Call(name="f", custom=custom, deltas=('{"a',), end=end), outcome=outcome)
    assert [kind.split(".")[1] for kind in kinds(events)] == ["added", "delta", "done"]
    assert events[-1]["type"] == "response.output_item.done"
    item = events[-1]["item"]
    assert (item["status"], item["input" if custom else "arguments"]) == ("incomplete", '{"a')


def test_opening_another_item_completes_a_call() -> None:
    call, message = items(Call(name="f", deltas=("{}",), end="left open"), *texts("Done."))
    assert (call["status"], message["content"][0]["text"]) == ("completed", "Done.")


def test_text_after_a_call_is_a_new_message() -> None:
    output = items(*texts("Let me look."), Call(name="f"), *texts("There."))
    assert [item["type"] for item in output] == ["message", "function_call", "message"]


def test_phase_is_there_only_when_there_is_one_and_a_new_one_opens_a_message() -> None:
    steps = [Text(delta="a"), Text(delta="b", phase="commentary"), Text(delta="c", phase="commentary")]
    plain, commentary, final = items(*steps, Text(delta="d", phase="final_answer"))
    assert "phase" not in plain
    assert (commentary["phase"], commentary["content"][0]["text"]) == ("commentary", "bc")
    assert final["phase"] == "final_answer"
    events = content(Text(delta="a", phase="commentary"))
    assert [event["item"]["phase"] for event in events if "item" in event] == ["commentary"] * 2


def test_log_probabilities_are_one_list() -> None:
    """In the deltas, the done event, the part and the stored item; the next message starts a new list."""
    a, b, c = token("a"), token("b"), token("c")
    first = [Text(delta="a", logprobs=(a,)), Text(delta="b", logprobs=(b,))]
    events = content(*first, Text(delta="c", phase="final_answer", logprobs=(c,)))
    assert [event["logprobs"] for event in events if "delta" in event] == [[a], [b], [c]]
    done, part, item = events[4:7]
    assert done["logprobs"] == part["part"]["logprobs"] == item["item"]["content"][0]["logprobs"] == [a, b]
    assert [message["content"][0]["logprobs"] for message in items(*first)] == [[a, b]]


def test_log_probabilities_of_a_character_s_first_bytes_wait_for_its_text() -> None:
    """A token may end inside a character: its text comes with the next token. Entries without text are left out."""
    head, tail, lost = token("\u00c3"), token("\u00a9"), token("x")
    steps = [Text(delta="", logprobs=(head,)), Text(delta="é", logprobs=(tail,)), Text(delta="", logprobs=(lost,))]
    endings: list[list[Step]] = [[], [Reasoning(delta="r"), Text(delta="s")], [Call(name="f"), Text(delta="s")]]
    for more in endings:
        message, *others = items(*steps, *more)
        assert message["content"][0]["logprobs"] == [head, tail]
        assert all(not other["content"][0]["logprobs"] for other in others if other["type"] == "message")
    assert kinds(content(*steps)).count("output_text.delta") == 1


def test_empty_reasoning_gives_no_event() -> None:
    builder = ResponseBuilder(base())
    builder.start()
    assert builder.reasoning("") == []
    builder.open_call("f")
    assert builder.call_text("") == []


def test_text_of_a_call_needs_an_open_call() -> None:
    """Whatever else is open."""
    builder = ResponseBuilder(base())
    with pytest.raises(RuntimeError):
        builder.open_call("too early")
    builder.start()
    builder.text("a")
    for misuse in (lambda: builder.call_text("{}"), builder.close_call):
        with pytest.raises(RuntimeError, match="No call is open"):
            misuse()
    builder.open_call("f")
    builder.close_call()
    with pytest.raises(RuntimeError, match="No call is open"):
        builder.close_call()
    finish(builder, "completed")
    for late in (lambda: builder.reasoning("a"), lambda: builder.open_call("f")):
        with pytest.raises(RuntimeError, match="has ended"):
            late()


def test_compaction_completes_what_is_open() -> None:
    """Its item comes after it."""
    builder = ResponseBuilder(base())
    builder.start()
    builder.text("a")
    events: Events = [*builder.compaction("blob")]
    assert [event["output_index"] for event in events] == [0, 0, 0, 1, 1, 1]
    assert events[-1]["item"]["id"] == derived_id("cmp_", "resp_1", 1)
    finish(builder, "completed")
    assert [item["type"] for item in builder.snapshot()["output"]] == ["message", "compaction"]


def test_log_probabilities_are_copied() -> None:
    """Later changes by the caller have no effect."""
    entry = token("a")
    builder = ResponseBuilder(base())
    builder.start()
    events: Events = [*builder.text("a", logprobs=[entry])]
    entry["top_logprobs"].clear()
    entry["token"] = "changed"
    assert events[-1]["logprobs"] == [token("a")]
    finish(builder, "completed")
    stored: Any = builder.snapshot()
    assert stored["output"][0]["content"][0]["logprobs"] == [token("a")]
