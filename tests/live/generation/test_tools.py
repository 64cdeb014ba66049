"""Function tools through the real SDK, in both shapes: an agent's loop, parallel calls, and their storage."""

import json
from typing import Any

import pytest
from openai import BadRequestError

from tests.live.server import LiveServer

from .tool_calls import MODEL, SHOW, TOOLS, ask, call, output, wire

STEPS = [("find", {"name": "Ada"}), ("add", {"left": 2, "right": 40})]
"""The arguments of the two calls of the loop, in order."""


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("chained", [False, True])
def test_an_agent_s_loop(server: LiveServer, streamed: bool, chained: bool) -> None:
    """Three turns, two tools. GET returns each turn, and the last one's input lists every item once."""
    returned = [call(*STEPS[1]), "[[say: It is 42.]]"]
    history: list[Any] = [{"role": "user", "content": f"[[say: Let me see.]]{call(*STEPS[0])}"}]
    new, previous, seen = history, None, []
    for step in range(3):
        given = {"input": new, "previous_response_id": previous} if chained else {"input": history}
        response = ask(server, streamed, **given)
        stored = server.client(web=server.web - 1).responses.retrieve(response.id)
        assert wire(stored.output) == wire(response.output)
        assert response.status == "completed"
        if step == 2:
            break
        made = response.output[-1]
        assert (made.type, made.name, json.loads(made.arguments)) == ("function_call", *STEPS[step])
        seen += [item.id for item in response.output]
        new, previous = [output(made, returned[step])], response.id
        history = [*history, *wire(response.output), *new]
    assert response.output_text == "It is 42."
    listed = list(server.client().responses.input_items.list(response.id, order="asc", limit=2))
    kinds = ["message", "message", "function_call", "function_call_output", "function_call", "function_call_output"]
    assert [item.type for item in listed] == kinds
    assert [listed[1].id, listed[2].id, listed[4].id] == seen
    assert len({item.id for item in listed}) == len(listed)


@pytest.mark.parametrize("order", [1, -1])
def test_parallel_calls(server: LiveServer, order: int) -> None:
    """Each has its own `call_id`; outputs may come in any order, which changes no count."""
    text = f"[[think: Two at once.]]{call(*STEPS[0])}{call(*STEPS[1])}{call(*STEPS[0])}"
    response = ask(server, True, input=text)
    reasoning, *calls = response.output
    assert reasoning.type == "reasoning"
    assert [(made.name, json.loads(made.arguments)) for made in calls] == [*STEPS, STEPS[0]]
    assert len({made.call_id for made in calls} | {made.id for made in calls}) == 6
    outputs = [output(made, f"result {number}") for number, made in enumerate(calls)][::order]
    given: dict[str, Any] = {"previous_response_id": response.id, "input": outputs, "tools": TOOLS}
    counted = server.client().responses.input_tokens.count(model=MODEL, **given)
    turned = server.client().responses.input_tokens.count(model=MODEL, **{**given, "input": outputs[::-1]})
    assert counted.input_tokens == turned.input_tokens
    shown = ask(server, False, **{**given, "input": [*outputs, SHOW]}, tool_choice="none")
    places = [shown.output_text.index(f"result {number}") for number in range(3)]
    assert places == sorted(places)


def test_calls_one_at_a_time(server: LiveServer) -> None:
    """`parallel_tool_calls: false` ends the answer after the first call."""
    text = f"[[say: One.]]{call(*STEPS[0])}{call(*STEPS[1])}"
    for streamed in (False, True):
        response = ask(server, streamed, input=text, parallel_tool_calls=False)
        assert [item.type for item in response.output] == ["message", "function_call"]
        assert response.parallel_tool_calls is False


def test_the_events_of_a_call(server: LiveServer) -> None:
    """One item is open at a time, with the ids of the final object; no empty item is opened."""
    text = f"[[think: Hm.]]{call(*STEPS[0])}{call(*STEPS[1])}"
    events: list[Any] = list(server.client().responses.create(model=MODEL, tools=TOOLS, input=text, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    final = events[-1].response
    assert [item.type for item in final.output] == ["reasoning", "function_call", "function_call"]
    open_item = None
    for event in events:
        if event.type == "response.output_item.added":
            assert open_item is None
            open_item = event.item
            assert event.item.id == final.output[event.output_index].id
            assert event.item.status == "in_progress"
        elif event.type == "response.output_item.done":
            assert event.item == final.output[event.output_index]
            open_item = None
        elif hasattr(event, "item_id"):
            assert open_item is not None
            assert (event.item_id, event.output_index) == (open_item.id, final.output.index(by_id(final, open_item.id)))
    for made in final.output[1:]:
        own = [event for event in events if getattr(event, "item_id", None) == made.id]
        assert own[-1].type == "response.function_call_arguments.done"
        assert "".join(event.delta for event in own[:-1]) == own[-1].arguments == made.arguments


def by_id(response: Any, item_id: str) -> Any:
    return next(item for item in response.output if item.id == item_id)


def test_a_cut_call(server: LiveServer) -> None:
    """It is incomplete and has no done event of its arguments; the next turn needs no output for it."""
    asked: dict[str, Any] = {"model": MODEL, "tools": TOOLS, "input": call("find", {"name": "x " * 100})}
    events: list[Any] = list(server.client().responses.create(stream=True, max_output_tokens=30, **asked))
    kinds = [event.type for event in events]
    assert "response.function_call_arguments.delta" in kinds
    assert "response.function_call_arguments.done" not in kinds
    assert kinds[-2:] == ["response.output_item.done", "response.incomplete"]
    final = events[-1].response
    assert (final.status, final.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert [item.status for item in final.output] == ["incomplete"]
    assert final.usage.output_tokens == 30
    assert server.client().responses.retrieve(final.id) == final
    assert ask(server, False, input="And now?", previous_response_id=final.id).status == "completed"


def test_a_call_without_its_output_and_an_output_without_its_call(server: LiveServer) -> None:
    """Both are 400 naming the call, chained, replayed and counted."""
    response = ask(server, False, input=call(*STEPS[0]))
    made = response.output[0]
    alone = [{"role": "user", "content": "x"}, output(made, "x")]
    given: list[dict[str, Any]] = [
        {"previous_response_id": response.id, "input": "What now?"},
        {"input": [{"role": "user", "content": "x"}, *wire(response.output), {"role": "user", "content": "y"}]},
        {"input": alone},
        {"previous_response_id": response.id, "input": [output(made, "x"), output(made, "y")]},
    ]
    for options in given:
        for streamed in (False, True):
            with pytest.raises(BadRequestError, match=made.call_id) as refused:
                server.client().responses.create(model=MODEL, tools=TOOLS, stream=streamed, **options)
            assert refused.value.param == "input"
        with pytest.raises(BadRequestError, match=made.call_id):
            server.client().responses.input_tokens.count(model=MODEL, tools=TOOLS, **options)


@pytest.mark.parametrize("text", ["café, 日本, 😀", 'a"b\\c\t/', "two\nlines", "</tool_call>", "{[}]"])
def test_text_of_all_kinds_comes_unchanged(server: LiveServer, text: str) -> None:
    """As an argument and as the output of a tool."""
    response = ask(server, True, input=call("find", {"name": text}))
    (made,) = response.output
    assert json.loads(made.arguments) == {"name": text}
    shown = ask(
        server,
        False,
        previous_response_id=response.id,
        input=[output(made, f"<<{text}>>"), SHOW],
        tool_choice="none",
    )
    assert f"<<{text}>>" in shown.output_text


def test_calls_in_a_conversation(server: LiveServer) -> None:
    """Call, output and answer are its items with their ids; deleting the response deletes none of them."""
    client = server.client()
    conversation = client.conversations.create()
    first = ask(server, True, input=call(*STEPS[0]), conversation=conversation.id)
    with pytest.raises(BadRequestError, match="'find'"):
        ask(server, False, input="And?", conversation=conversation.id)
    second = ask(
        server, False, input=[output(first.output[0], "[[say: Found.]]")], conversation={"id": conversation.id}
    )
    assert second.output_text == "Found."
    client.responses.delete(first.id)
    listed = list(client.conversations.items.list(conversation.id, order="asc", limit=3))
    assert [item.type for item in listed] == ["message", "function_call", "function_call_output", "message"]
    assert [listed[1].id, listed[3].id] == [first.output[0].id, second.output[0].id]
    found: Any = client.conversations.items.retrieve(str(listed[1].id), conversation_id=conversation.id)
    assert (found.call_id, found.arguments) == (first.output[0].call_id, first.output[0].arguments)


def test_the_count_equals_the_usage(server: LiveServer) -> None:
    """With tools, in the first turn and after; equal for a chain and its replay; more than without tools."""
    question = {"role": "user", "content": f"[[think: Hm.]]{call(*STEPS[0])}"}
    first = ask(server, False, input=[question])
    returned = output(first.output[-1], "x")
    chained = {"previous_response_id": first.id, "input": [returned]}
    replayed = {"input": [question, *wire(first.output), returned]}
    used = []
    for given in ({"input": [question]}, chained, replayed):
        counted = server.client().responses.input_tokens.count(model=MODEL, tools=TOOLS, **given)
        usage = ask(server, False, **given).usage
        assert counted.input_tokens == usage.input_tokens
        used.append(usage.input_tokens)
    assert used[0] < used[1] == used[2]
    assert server.client().responses.input_tokens.count(model=MODEL, input=str(question)).input_tokens < used[0]


def test_a_regular_expression_applies_in_a_call_too(server: LiveServer) -> None:
    """Whatever escapes JSON uses for a character."""
    tool: Any = {
        "type": "custom",
        "name": "word",
        "format": {"type": "grammar", "syntax": "regex", "definition": '[^"]+'},
    }
    answer = ask(server, False, input='[[call: word {"input": "a\\"b"}]]', tools=[tool])
    assert '"' not in answer.output[0].input


def test_a_grammar_of_many_words_applies(server: LiveServer) -> None:
    words = " | ".join(f'"k{number}"' for number in range(3000))
    form = {"type": "grammar", "syntax": "lark", "definition": f"start: {words}"}
    tool: Any = {"type": "custom", "name": "word", "format": form}
    answer = ask(server, False, input='[[call: word {"input": "k2468"}]]', tools=[tool], tool_choice="required")
    assert answer.output[0].input == "k2468"


def test_output_is_accepted_as_input(server: LiveServer) -> None:
    """As the SDK dumps it, with nulls and its spelling of reserved words."""
    tool: Any = {"type": "custom", "name": "say"}
    said = '[[call: say {"input": "a\\u0000b"}]][[call: add {"left": 1, "right": 2}]]'
    made = ask(server, False, input=said, tools=[*TOOLS, tool])
    assert [item.type for item in made.output] == ["custom_tool_call", "function_call"]
    assert made.output[0].input == "a\ufffdb"
    replayed = [item.model_dump() for item in made.output]
    assert "async_" in replayed[1]
    outputs = [output(item, "[[say: well]]") for item in made.output]
    again = ask(server, False, input=[{"role": "user", "content": "x"}, *replayed, *outputs], tools=[*TOOLS, tool])
    assert again.output_text == "wellwell"
