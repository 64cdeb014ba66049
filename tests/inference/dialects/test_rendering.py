"""History and tools reach a template in the form that it reads, and come back as the calls they were."""

import json
from dataclasses import replace
from typing import Any

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.calls import CustomFormat, Thinking, Tool
from inference.calls.pieces import CallArguments, CallClosed, CallInput, CallOpened, Text, merged
from inference.dialects import DIALECTS, OWN_TEMPLATE
from inference.prompts import MessageStyle, template_tools
from tests.inference.dialects.transcripts import CLOSE, PATCH, TOOLS, WEATHER


def says(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def calls(id: str, name: str, arguments: str = "{}", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": id, "name": name, "arguments": arguments, **more}


def output(id: str, text: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id, "output": text}


HISTORY = [
    says("developer", "Be brief."),
    says("user", "Weather?"),
    {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
    says("assistant", "I look."),
    calls("call_a", "get_weather", '{"city": "Paris"}'),
    calls("call_b", "close", '{"target": "x"}', namespace="agents"),
    output("call_b", "closed"),
    output("call_a", [{"type": "input_text", "text": "20"}, {"type": "input_text", "text": " C"}]),
    {"type": "web_search_call", "id": "ws_1"},
    says("assistant", "20 C."),
    says("user", "Thanks."),
]


def test_a_turn_is_one_message_and_outputs_follow_in_the_order_of_calls() -> None:
    messages = DIALECTS["hermes"].template_messages(HISTORY, tools=TOOLS)
    assert messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [
                {
                    "id": "call_a",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": {"city": "Paris"}},
                },
                {
                    "id": "call_b",
                    "type": "function",
                    "function": {"name": "agents::close", "arguments": {"target": "x"}},
                },
            ],
        },
        {"role": "tool", "tool_call_id": "call_a", "name": "get_weather", "content": "20 C"},
        {"role": "tool", "tool_call_id": "call_b", "name": "agents::close", "content": "closed"},
        {"role": "assistant", "content": "20 C."},
        {"role": "user", "content": "Thanks."},
    ]


def test_the_order_of_outputs_changes_nothing() -> None:
    swapped = [*HISTORY[:6], HISTORY[7], HISTORY[6], *HISTORY[8:]]
    for name in ("hermes", "harmony", "mistral", "kimi", "gemma"):
        dialect = DIALECTS[name]
        assert dialect.template_messages(swapped) == dialect.template_messages(HISTORY)


def test_a_call_after_an_output_is_a_message_of_its_own() -> None:
    items = [says("user", "a"), calls("1", "now"), output("1", "x"), calls("2", "now"), output("2", "y")]
    roles = [message["role"] for message in DIALECTS["hermes"].template_messages(items)]
    assert roles == ["user", "assistant", "tool", "assistant", "tool"]


def test_neighbouring_system_messages_become_one() -> None:
    items = [says("system", "a"), says("developer", "b"), says("user", "c"), says("system", "d")]
    messages = DIALECTS["hermes"].template_messages(items)
    assert [(message["role"], message["content"]) for message in messages] == [
        ("system", "a\n\nb"), ("user", "c"), ("system", "d"),
    ]  # fmt: skip


@pytest.mark.parametrize("dialect", ["deepseek", "deepseek-dsml"])
def test_arguments_as_text_where_the_template_wants_it(dialect: Any) -> None:
    message = DIALECTS[dialect].template_messages(HISTORY)[2]
    assert message["tool_calls"][0]["function"]["arguments"] == '{"city": "Paris"}'


def test_mistral_ids_are_nine_letters_and_always_the_same() -> None:
    first, again = (DIALECTS["mistral"].template_messages(HISTORY) for _ in range(2))
    ids = [call["id"] for call in first[2]["tool_calls"]]
    assert all(len(id) == 9 and id.isalnum() for id in ids)
    assert len(set(ids)) == 2
    assert [first[3]["tool_call_id"], first[4]["tool_call_id"]] == ids
    assert first == again


def test_kimi_ids_name_the_tool_and_count_through_the_conversation() -> None:
    items = [*HISTORY, calls("call_c", "now"), output("call_c", "x")]
    messages = DIALECTS["kimi"].template_messages(items)
    ids = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    assert ids == ["functions.get_weather:0", "functions.agents::close:1", "functions.now:2"]


def test_harmony_has_one_call_a_message_with_its_output_behind() -> None:
    messages = DIALECTS["harmony"].template_messages(HISTORY, show_reasoning=True)
    assert [message["role"] for message in messages[2:6]] == ["assistant", "tool", "assistant", "tool"]
    assert messages[2]["thinking"] == "Hm.\n\nI look."
    assert messages[2]["content"] == ""
    assert "thinking" not in messages[4]
    assert messages[5]["content"] == "closed"


def test_a_template_that_refuses_several_calls_gets_one_a_message() -> None:
    dialect = replace(DIALECTS["llama"], style=MessageStyle(one_call_per_message=True))
    messages = dialect.template_messages(HISTORY)
    assert [message["role"] for message in messages[2:7]] == ["assistant", "assistant", "tool", "assistant", "tool"]
    assert [message["content"] for message in messages[2:7]] == ["I look.", "", "20 C", "", "closed"]
    assert [len(message["tool_calls"]) for message in messages if "tool_calls" in message] == [1, 1]


def test_gemma_has_the_outputs_in_the_message_of_the_calls() -> None:
    message = DIALECTS["gemma"].template_messages(HISTORY)[2]
    assert message["tool_responses"] == [
        {"name": "get_weather", "response": "20 C"},
        {"name": "agents::close", "response": "closed"},
    ]


def test_function_gemma_has_an_output_beside_its_tools_name() -> None:
    message = DIALECTS["function-gemma"].template_messages(HISTORY)[3]
    assert message["content"] == {"name": "get_weather", "response": {"result": "20 C"}}


def test_markers_are_those_of_calls_and_of_thinking() -> None:
    """The engine emits them as text."""
    plain = DIALECTS["kimi"].markers
    assert {"<|tool_call_begin|>", "<|tool_call_end|>", "<|tool_call_argument_begin|>"} <= plain
    assert replace(DIALECTS["kimi"], thinking=Thinking()).markers == plain | {"<think>", "</think>"}


def test_reasoning_goes_where_the_template_has_a_place_for_it() -> None:
    style = MessageStyle(reasoning_key="reasoning_content")
    keyed = replace(DIALECTS["hermes"], thinking=Thinking(), style=style)
    assert keyed.template_messages(HISTORY, show_reasoning=True)[2]["reasoning_content"] == "Hm."
    inline = replace(DIALECTS["hermes"], thinking=Thinking())
    assert inline.template_messages(HISTORY, show_reasoning=True)[2]["content"] == "<think>\nHm.\n</think>\n\nI look."
    assert inline.template_messages(HISTORY)[2]["content"] == "I look."
    assert DIALECTS["hermes"].template_messages(HISTORY, show_reasoning=True)[2]["content"] == "I look."


def test_a_cut_call_in_the_history_is_shown_with_what_there_is() -> None:
    items = [says("user", "a"), calls("1", "now", '{"a": "b'), output("1", "x")]
    message = DIALECTS["hermes"].template_messages(items)[1]
    assert message["tool_calls"][0]["function"]["arguments"] == {"arguments": '{"a": "b'}


def test_tools_are_functions_with_their_shown_names() -> None:
    described = Tool(
        name="apply_patch", custom=True, description="Edits.", format=CustomFormat(syntax="regex", definition="a+")
    )
    shown = [tool["function"] for tool in template_tools([WEATHER, CLOSE, PATCH, described])]
    assert [function["name"] for function in shown] == ["get_weather", "agents::close", "apply_patch", "apply_patch"]
    assert shown[0]["parameters"] == WEATHER.parameters
    assert shown[2]["parameters"]["properties"] == {"input": {"type": "string"}}
    assert shown[3]["description"].startswith("Edits.")
    assert shown[3]["description"].endswith("a+")


class TestOwnTemplate:
    def test_tools_calls_and_outputs_are_text(self) -> None:
        messages = OWN_TEMPLATE.template_messages(HISTORY, tools=[WEATHER])
        assert {tuple(message) for message in messages} == {("role", "content")}
        assert [message["role"] for message in messages] == [
            "system", "user", "assistant", "user", "assistant", "user",
        ]  # fmt: skip
        assert messages[0]["content"].startswith("Be brief.\n\n# Tools")
        assert json.dumps(WEATHER.parameters) in messages[0]["content"]
        assert messages[3]["content"] == (
            "<tool_response>\n20 C\n</tool_response>\n<tool_response>\nclosed\n</tool_response>"
        )

    def test_reasoning_is_text_between_its_markers(self) -> None:
        thinks = replace(OWN_TEMPLATE, thinking=Thinking())
        shown = thinks.template_messages(HISTORY, show_reasoning=True)[2]["content"]
        assert shown.startswith("<think>\nHm.\n</think>\n\nI look.")
        assert thinks.template_messages(HISTORY)[2]["content"].startswith("I look.")

    def test_without_tools_nothing_is_added(self) -> None:
        assert OWN_TEMPLATE.template_messages([says("user", "a")]) == [{"role": "user", "content": "a"}]

    def test_tools_make_a_system_message(self) -> None:
        messages = OWN_TEMPLATE.template_messages([says("user", "a")], tools=[WEATHER])
        assert [message["role"] for message in messages] == ["system", "user"]

    def test_a_rendered_call_reads_as_the_call(self) -> None:
        content = OWN_TEMPLATE.template_messages(HISTORY, tools=TOOLS)[2]["content"]
        parser = DIALECTS["hermes"].new_parser(TOOLS)
        assert merged([*parser.feed(content), *parser.flush()]) == [
            Text("I look."),
            CallOpened("get_weather"),
            CallArguments('{"city": "Paris"}'),
            CallClosed(),
            CallOpened("close", "agents"),
            CallArguments('{"target": "x"}'),
            CallClosed(),
        ]


QWEN_LIKE = """{%- for message in messages %}{%- if message.tool_calls %}{%- for tool_call in message.tool_calls %}
<tool_call>
<function={{ tool_call.function.name }}>
{% for key, value in tool_call.function.arguments|items %}<parameter={{ key }}>
{{ value | tojson if value is mapping or (value is sequence and value is not string) else value | string }}
</parameter>
{% endfor %}</function>
</tool_call>{% endfor %}{% endif %}{% endfor %}"""


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=30), days=st.integers())
def test_what_a_template_writes_of_a_call_reads_as_the_call(text: str, days: int) -> None:
    """Qwen3-Coder's tags: any text, unless it holds the closing tags themselves."""
    arguments = {"city": text, "days": days}
    items = [
        calls("1", "get_weather", json.dumps(arguments)),
        {"type": "custom_tool_call", "call_id": "2", "name": "apply_patch", "input": text},
    ]
    messages = DIALECTS["qwen-xml"].template_messages(items)
    written = jinja2.Environment().from_string(QWEN_LIKE).render(messages=messages)
    parser = DIALECTS["qwen-xml"].new_parser(TOOLS)
    pieces = merged([*parser.feed(written), *parser.flush()])
    assert [json.loads(piece.text) for piece in pieces if isinstance(piece, CallArguments)] == [arguments]
    assert "".join(piece.text for piece in pieces if isinstance(piece, CallInput)) == text.replace("\0", "\ufffd")


@pytest.mark.parametrize("levels", [90, 900, 100_000])
def test_arguments_that_are_nested_too_deep_for_templates_are_shown_as_text(levels: int) -> None:
    arguments = '{"a":' * levels + "1" + "}" * levels
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments}
    [message] = DIALECTS["hermes"].template_messages([call])
    shown = message["tool_calls"][0]["function"]["arguments"]
    assert shown == (json.loads(arguments) if levels == 90 else {"arguments": arguments})
