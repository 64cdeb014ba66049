"""Tool choice through the real SDK: choices, namespaces, custom and hosted tools, schemas."""

import json
import re
from typing import Any

import jsonschema
import pytest
from openai import BadRequestError
from pydantic import BaseModel

from tests.live.server import LiveServer

from .tool_calls import MODEL, SHOW, TOOLS, ask, call, function, output, wire

PATCH = """start: "*** Begin Patch" LF add~1..2 "*** End Patch" LF?
add: "*** Add File: " /[a-z.]{1,8}/ LF line~1..3
line: "+" /.{0,8}/ LF
%import common.LF
"""
IS_PATCH = re.compile(r"\*\*\* Begin Patch\n(\*\*\* Add File: [a-z.]{1,8}\n(\+.{0,8}\n){1,3}){1,2}\*\*\* End Patch\n?")
NAMESPACE: Any = {
    "type": "namespace",
    "name": "crm",
    "description": "Customers.",
    "tools": [function("find", id="integer"), {"type": "custom", "name": "note", "description": "Write it down."}],
}
HOSTED: Any = [
    {"type": "web_search", "search_context_size": "low"},
    {"type": "file_search", "vector_store_ids": ["vs_1"]},
    {"type": "mcp", "server_label": "here", "server_url": "https://example.com/mcp", "require_approval": "never"},
    {"type": "code_interpreter", "container": {"type": "auto"}},
]


def custom(definition: str = "", syntax: str = "lark") -> Any:
    """A custom tool, with a grammar or without."""
    form = {"type": "grammar", "syntax": syntax, "definition": definition} if definition else {"type": "text"}
    return {"type": "custom", "name": "apply_patch", "description": "Changes files.", "format": form}


def calls(response: Any) -> list[str]:
    return [item.name for item in response.output if item.type in ("function_call", "custom_tool_call")]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("choice", "said", "called"),
    [
        ("auto", "Nothing to do.", []),
        ("auto", call("add", {"left": 1, "right": 2}), ["add"]),
        ("none", "Nothing to do.", []),
        ("required", "Nothing to do.", None),
        ("required", call("add", {"left": 1, "right": 2}), ["add"]),
        ({"type": "function", "name": "add"}, "Nothing to do.", ["add"]),
        ({"type": "function", "name": "add"}, call("find", {"name": "Ada"}), ["add"]),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "add"}]},
            "No.",
            ["add"],
        ),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "find"}]}, "No.", []),
    ],
    ids=str,
)
def test_the_choice_is_enforced(server: LiveServer, choice: Any, said: str, called: Any, streamed: bool) -> None:
    """Whatever the script says; the choice is echoed."""
    response = ask(server, streamed, input=said if "[[" in said else f"[[say: {said}]]", tool_choice=choice)
    assert response.status == "completed"
    found = calls(response)
    assert found == called if called is not None else found and set(found) <= {"find", "add"}
    assert (response.output_text == said) is (called == [])
    assert response.to_dict()["tool_choice"] == choice
    schemas = {tool["name"]: tool["parameters"] for tool in TOOLS}
    for made in response.output:
        if made.type == "function_call":
            jsonschema.validate(json.loads(made.arguments), schemas[made.name])


def test_an_invalid_choice_is_refused(server: LiveServer) -> None:
    """400 that names the place, streamed and not."""
    refused: list[tuple[Any, list[Any], str]] = [
        ({"type": "function", "name": "fnd"}, TOOLS, "tool_choice.name"),
        ({"type": "custom", "name": "find"}, TOOLS, "tool_choice.name"),
        ({"type": "web_search"}, HOSTED, "tool_choice.type"),
        ("required", HOSTED, "tool_choice"),
        ("required", [], "tool_choice"),
        ("auto", [TOOLS[0], TOOLS[0]], "tools[1].name"),
    ]
    for choice, tools, param in refused:
        for streamed in (False, True):
            with pytest.raises(BadRequestError) as error:
                server.client().responses.create(
                    model=MODEL, input="x", tools=tools, tool_choice=choice, stream=streamed
                )
            assert error.value.param == param


@pytest.mark.parametrize("streamed", [False, True])
def test_a_namespaced_call(server: LiveServer, streamed: bool) -> None:
    """It has name and namespace, and is accepted back, by reference and replayed; both count the same."""
    question = {"role": "user", "content": call("crm::find", {"id": 7}) + call("crm::note", {"input": "Seven!"})}
    tools = [*TOOLS, NAMESPACE]
    response = ask(server, streamed, input=[question], tools=tools)
    found, note = response.output
    assert (found.type, found.namespace, found.name, json.loads(found.arguments)) == (
        "function_call",
        "crm",
        "find",
        {"id": 7},
    )
    assert (note.type, note.namespace, note.name, note.input) == ("custom_tool_call", "crm", "note", "Seven!")
    assert response.to_dict()["tools"][-1]["name"] == "crm"
    stored = server.client().responses.retrieve(response.id)
    assert wire(stored.output) == wire(response.output)
    outputs = [output(note, "[[say: Noted.]]"), output(found, "Ada")]
    chained = ask(server, streamed, input=outputs[::-1], previous_response_id=response.id, tools=tools)
    replayed = ask(server, streamed, input=[question, *wire(response.output), *outputs], tools=tools)
    assert chained.output_text == replayed.output_text == "Noted."
    assert chained.usage.input_tokens == replayed.usage.input_tokens
    listed = list(server.client().responses.input_items.list(chained.id, order="asc"))
    assert wire(listed[1:3]) == wire(response.output)


def test_a_chosen_tool_of_a_namespace(server: LiveServer) -> None:
    chosen: Any = {"type": "function", "name": "find", "namespace": "crm"}
    (made,) = ask(server, False, input="[[say: 12]]", tools=[*TOOLS, NAMESPACE], tool_choice=chosen).output
    assert (made.name, made.namespace) == ("find", "crm")
    assert isinstance(json.loads(made.arguments)["id"], int)


@pytest.mark.parametrize("text", ["one\ntwo", 'say "hi" \\ {}', "", "+1"])
def test_a_custom_tool_takes_any_text(server: LiveServer, text: str) -> None:
    """Its input is streamed unchanged; its output reaches the model."""
    asked: dict[str, Any] = {"model": MODEL, "input": call("apply_patch", {"input": text}), "tools": [custom()]}
    events: list[Any] = list(server.client().responses.create(stream=True, **asked))
    final = events[-1].response
    (made,) = final.output
    assert (made.type, made.name, made.input, made.status) == ("custom_tool_call", "apply_patch", text, "completed")
    deltas = [event.delta for event in events if event.type == "response.custom_tool_call_input.delta"]
    done = [event.input for event in events if event.type == "response.custom_tool_call_input.done"]
    assert ("".join(deltas), done) == (text, [text])
    assert server.client().responses.create(**asked).output[0].input == text
    for returned in ("[[say: It is done.]]", [{"type": "input_text", "text": "[[say: It is done.]]"}]):
        given: Any = [{**output(made, ""), "output": returned}]
        after = server.client().responses.create(model=MODEL, input=given, previous_response_id=final.id)
        assert after.output_text == "It is done."
    with pytest.raises(BadRequestError):
        server.client().responses.create(model=MODEL, input="And?", previous_response_id=final.id)


@pytest.mark.parametrize("said", ["", "*** Begin Patch\n*** Add File: a.txt\n+one\n+two\n*** End Patch\n", "no patch"])
def test_the_input_of_a_custom_tool_follows_its_grammar(server: LiveServer, said: str) -> None:
    """Whatever the script says; text that matches comes unchanged."""
    chosen = {"type": "custom", "name": "apply_patch"}
    text = call("apply_patch", {"input": said})
    for streamed in (False, True):
        response = ask(server, streamed, input=text, tools=[custom(PATCH)], tool_choice=chosen)
        made = response.output[-1]
        assert (made.type, response.status) == ("custom_tool_call", "completed")
        assert IS_PATCH.fullmatch(made.input)
        assert made.input == said or not IS_PATCH.fullmatch(said)


def test_the_input_of_a_custom_tool_matches_its_expression(server: LiveServer) -> None:
    tool = custom("[A-Z]{3}-[0-9]{2}", "regex")
    for said in ("ABC-12", "abc", ""):
        made = ask(server, False, input=call("apply_patch", {"input": said}), tools=[tool]).output[0]
        assert re.fullmatch("[A-Z]{3}-[0-9]{2}", made.input)
        assert made.input == said or said != "ABC-12"


@pytest.mark.parametrize("definition", ["start: (", "start: /(/", 'begin: "x"'])
def test_an_invalid_grammar(server: LiveServer, definition: str) -> None:
    with pytest.raises(BadRequestError) as error:
        ask(server, False, input="x", tools=[custom(definition)])
    assert error.value.param == "tools[0].format.definition"


@pytest.mark.parametrize("strict", [True, False])
def test_arguments_satisfy_the_schema(server: LiveServer, strict: bool) -> None:
    """Whatever the script says; values that match come unchanged."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "enum": ["Paris", "Rome"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 9},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        },
        "required": ["city", "days", "tags"],
        "additionalProperties": False,
    }
    tool: Any = {"type": "function", "name": "plan", "parameters": schema, "strict": strict}
    right = {"city": "Rome", "days": 3, "tags": ["a"]}
    for said in (right, {}, {"city": "Oslo", "days": 100}, {"days": "two", "more": {"deep": []}}, {"tags": [1, 2, 3]}):
        (made, *_) = ask(server, True, input=call("plan", said), tools=[tool]).output
        arguments = json.loads(made.arguments)
        jsonschema.validate(arguments, schema)
        assert arguments == right or said != right


def test_hosted_tools_are_echoed_and_take_no_tokens(server: LiveServer) -> None:
    plain = ask(server, False, input=[SHOW], tool_choice="none")
    beside = ask(server, False, input=[SHOW], tools=[*HOSTED, *TOOLS, *HOSTED], tool_choice="none")
    alone = ask(server, False, input=[SHOW], tools=HOSTED)
    without = ask(server, False, input=[SHOW], tools=[])
    assert beside.to_dict()["tools"][:4] == alone.to_dict()["tools"] == HOSTED
    assert beside.usage.input_tokens == plain.usage.input_tokens
    assert alone.usage.input_tokens == without.usage.input_tokens
    assert "web_search" not in alone.output_text
    for tools in (TOOLS, [*HOSTED, *TOOLS]):
        counted = server.client().responses.input_tokens.count(model=MODEL, input="x", tools=tools)
        assert counted.input_tokens == ask(server, False, input="x", tools=tools).usage.input_tokens


class Answer(BaseModel):
    total: int
    words: list[str]


def test_structured_output_with_tools(server: LiveServer) -> None:
    """In one loop a call is a call, and the final answer is JSON of the schema."""
    client = server.client()
    asked: dict[str, Any] = {"model": MODEL, "tools": TOOLS, "text_format": Answer}
    first = client.responses.parse(input=f"[[think: Add.]]{call('add', {'left': 1, 'right': 2})}", **asked)
    made = first.output[-1]
    assert made.type == "function_call"
    assert made.parsed_arguments == {"left": 1, "right": 2}
    assert first.output_parsed is None
    returned: Any = [output(made, "[[say: It is 3, of course.]]")]
    second = client.responses.parse(input=returned, previous_response_id=first.id, **asked)
    assert isinstance(second.output_parsed, Answer)
    with client.responses.stream(input="[[say: Words alone.]]", **asked) as stream:
        third = stream.get_final_response()
    assert isinstance(third.output_parsed, Answer)
    assert not calls(third)
