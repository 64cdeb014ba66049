"""Items other than messages: which are accepted, how they are listed, and what the model sees."""

from typing import Any, get_args

import pytest
from openai.types.responses import ResponseItem
from openai.types.responses.response_input_item_param import ResponseInputItemParam
from pydantic import TypeAdapter

from responses_api.errors import ApiError, InvalidValue
from responses_api.ids import is_client_id, new_id
from responses_api.protocol import (
    check_tool_pairs,
    input_items,
    item_prefix,
    parse_create,
    references,
    sent_items,
    shown_items,
)
from responses_api.protocol.items.hosted import HOSTED_TYPES
from responses_api.protocol.items.input import LATER_TYPES, OWN_TYPES
from responses_api.protocol.objects import Item
from tests.protocol.references import open_responses_errors

ITEM: TypeAdapter[Any] = TypeAdapter(ResponseItem)
OUR_ITEM: TypeAdapter[Any] = TypeAdapter(Item)

FUNCTION_CALL = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{"}
FUNCTION_OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "4"}
CUSTOM_CALL = {"type": "custom_tool_call", "call_id": "call_2", "name": "g", "input": "x"}
CUSTOM_OUTPUT = {"type": "custom_tool_call_output", "call_id": "call_2", "output": "5"}
COMPACTION = {"type": "compaction", "encrypted_content": "blob"}
PARTS = [{"type": "input_text", "text": "4"}]
ACTION = {"type": "search", "query": "q", "queries": None}

# Items as a client may send them, and the fields that the list adds.
ITEMS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (FUNCTION_CALL, {"status": "completed"}),
    ({**FUNCTION_CALL, "namespace": "n", "async": True, "caller": {"type": "direct"}, "status": "incomplete"}, {}),
    (FUNCTION_OUTPUT, {"status": "completed"}),
    ({**FUNCTION_OUTPUT, "output": PARTS, "status": "completed"}, {}),
    (CUSTOM_CALL, {"status": "completed"}),
    ({**CUSTOM_CALL, "status": "completed"}, {}),
    (CUSTOM_OUTPUT, {"status": "completed"}),
    ({**CUSTOM_OUTPUT, "output": PARTS}, {"status": "completed"}),
    ({"type": "reasoning", "summary": []}, {}),
    ({"type": "reasoning", "encrypted_content": "blob"}, {"summary": []}),
    ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}],
      "content": [{"type": "reasoning_text", "text": "t"}], "status": "completed"}, {}),
    (COMPACTION, {}),
    ({"type": "web_search_call", "action": ACTION}, {"status": "completed"}),
    ({"type": "file_search_call", "queries": ["q"], "status": "failed"}, {}),
    ({"type": "code_interpreter_call", "container_id": "c", "code": "1"}, {"status": "completed", "outputs": None}),
    ({"type": "image_generation_call", "status": "failed"}, {"result": None}),
    ({"type": "computer_call", "call_id": "c", "action": {"type": "wait"}},
     {"status": "completed", "pending_safety_checks": []}),
    ({"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot"}},
     {"status": "completed"}),
    ({"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["ls"], "env": {}}},
     {"status": "completed"}),
    ({"type": "local_shell_call_output", "output": "{}"}, {}),
    ({"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
     {"status": "completed", "environment": None}),
    ({"type": "shell_call_output", "call_id": "c", "output": []}, {"status": "completed", "max_output_length": None}),
    ({"type": "apply_patch_call", "call_id": "c", "status": "completed",
      "operation": {"type": "delete_file", "path": "p"}}, {}),
    ({"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "no"}, {}),
    ({"type": "tool_search_call", "arguments": {"q": 1}},
     {"status": "completed", "call_id": None, "execution": "server"}),
    ({"type": "tool_search_output", "tools": [], "call_id": "c", "execution": "client"}, {"status": "completed"}),
    ({"type": "mcp_call", "server_label": "s", "name": "n", "arguments": "{}", "output": "o"}, {}),
    ({"type": "mcp_list_tools", "server_label": "s", "tools": [{"name": "n", "input_schema": {}}]}, {}),
    ({"type": "mcp_approval_request", "server_label": "s", "name": "n", "arguments": "{}"}, {}),
    ({"type": "mcp_approval_response", "approval_request_id": "a", "approve": False}, {}),
    ({"type": "program", "call_id": "c", "code": "1", "fingerprint": "f"}, {}),
    ({"type": "program_output", "call_id": "c", "result": "1", "status": "completed"}, {}),
]  # fmt: skip


def listed(*items: dict[str, Any]) -> list[dict[str, Any]]:
    return input_items(parse_create({"input": list(items), "previous_response_id": "resp_1"}), new_id=new_id)


def error_of(item: dict[str, Any]) -> tuple[str | None, str | None]:
    with pytest.raises(ApiError) as caught:
        parse_create({"input": [{"role": "user", "content": "a"}, item]})
    return caught.value.param, caught.value.code


@pytest.mark.parametrize(("sent", "added"), ITEMS, ids=[sent["type"] for sent, _ in ITEMS])
def test_items_are_listed_as_they_were_sent(sent: dict[str, Any], added: dict[str, Any]) -> None:
    """Nulls equal absence; the id is the client's or a new one; replaying listed items gives the same."""
    [item] = listed({**sent, "id": "mine"})
    assert item == {"id": "mine", **sent, **added}
    ITEM.validate_python(item)
    assert OUR_ITEM.validate_python(item, strict=True) == item
    assert listed(item) == [item]
    if "summary" not in sent:
        ITEM.validate_python(item, strict=True)
    [fresh] = listed({**sent, "id": None})
    assert fresh["id"].startswith(item_prefix(sent["type"]))


def test_items_known_to_open_responses_match_its_schema() -> None:
    """Those of hosted and custom tools are OpenAI's only; docs/compatibility.md says so."""
    said = [{"role": role, "content": "a"} for role in ("user", "assistant", "system", "developer")]
    for item in listed(*said, {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}):
        assert open_responses_errors("ItemField", item) == []
    known = {"function_call", "function_call_output", "reasoning", "compaction"}
    for item in listed(*(sent for sent, _ in ITEMS)):
        assert (open_responses_errors("ItemField", item) == []) == (item["type"] in known)


def test_every_item_type_of_the_sdk_is_known() -> None:
    """A newer SDK that types one more item fails here first."""
    types = set()
    for cls in get_args(ResponseInputItemParam):
        kind = TypeAdapter(cls).json_schema()["properties"]["type"]
        types |= {kind["const"]} if "const" in kind else {entry["const"] for entry in kind["anyOf"] if "const" in entry}
    assert types == {"message", *OWN_TYPES, *HOSTED_TYPES, *LATER_TYPES}
    elsewhere = {"message", "item_reference", "compaction_trigger", *LATER_TYPES}
    assert {sent["type"] for sent, _ in ITEMS} == types - elsewhere


@pytest.mark.parametrize(
    ("item", "param", "code"),
    [
        ({**FUNCTION_CALL, "name": ""}, "input[1].name", "invalid_value"),
        ({**FUNCTION_CALL, "arguments": {}}, "input[1].arguments", "invalid_value"),
        ({**FUNCTION_CALL, "async_": True}, "input[1].async_", "unknown_parameter"),
        ({**FUNCTION_CALL, "async": "yes"}, "input[1].async", "invalid_value"),
        ({**FUNCTION_CALL, "output": "a"}, "input[1].output", "unknown_parameter"),
        ({**FUNCTION_OUTPUT, "call_id": None}, "input[1].call_id", "missing_required_parameter"),
        ({**FUNCTION_OUTPUT, "output": None}, "input[1].output", "missing_required_parameter"),
        ({**FUNCTION_OUTPUT, "output": {"a": 1}}, "input[1].output", "invalid_value"),
        ({**FUNCTION_OUTPUT, "output": [{"type": "text"}]}, "input[1].output[0]", "invalid_value"),
        ({**FUNCTION_OUTPUT, "output": [{"type": "input_text"}]},
         "input[1].output[0].text", "missing_required_parameter"),
        ({**FUNCTION_OUTPUT, "output": [{"type": "input_image", "image_url": "u"}]},
         "input[1].output[0]", "invalid_value"),
        ({**CUSTOM_CALL, "input": 5}, "input[1].input", "invalid_value"),
        ({"type": "reasoning", "summary": [{"type": "text", "text": "a"}]},
         "input[1].summary[0].type", "invalid_value"),
        ({"type": "reasoning", "content": "a"}, "input[1].content", "invalid_value"),
        ({"type": "compaction"}, "input[1].encrypted_content", "missing_required_parameter"),
        ({"type": "item_reference"}, "input[1].id", "missing_required_parameter"),
        ({"type": "item_reference", "id": "a", "content": "b"}, "input[1].content", "unknown_parameter"),
        ({"type": "web_search_call"}, "input[1].action", "missing_required_parameter"),
        ({"type": "file_search_call", "queries": [1]}, "input[1].queries[0]", "invalid_value"),
        ({"type": "mcp_call", "server_label": "s", "name": "n"}, "input[1].arguments", "missing_required_parameter"),
        ({"type": "additional_tools"}, "input[1]", "unsupported_parameter"),
        ({"type": "function_cal"}, "input[1]", "invalid_value"),
    ],
)  # fmt: skip
def test_an_error_in_an_item_has_its_path(item: dict[str, Any], param: str, code: str) -> None:
    assert error_of(item) == (param, code)


@pytest.mark.parametrize("kind", ["input_image", "input_file", "input_audio"])
def test_media_are_refused_in_one_sentence(kind: str) -> None:
    """The message says that the model can't read them, whatever other fields the part has."""
    with pytest.raises(InvalidValue, match=f"'{kind}', but the model can't read"):
        parse_create({"input": [{"role": "user", "content": [{"type": kind}]}]})


def test_a_compaction_trigger_is_the_last_item_and_not_in_the_history() -> None:
    """At another place it is refused."""
    said, trigger = {"role": "user", "content": "a"}, {"type": "compaction_trigger"}
    request = parse_create({"input": [said, trigger]})
    assert request.asks_for_compaction
    assert [item["type"] for item in input_items(request)] == ["message"]
    assert not parse_create({"input": [said]}).asks_for_compaction
    with pytest.raises(InvalidValue) as caught:
        parse_create({"input": [said, trigger, said]})
    assert caught.value.param == "input[1]"


def test_references_keep_their_ids() -> None:
    """With or without a type, and even if another item of the request has the id."""
    items = listed({"role": "user", "content": "a", "id": "x"}, {"type": "item_reference", "id": "x"}, {"id": "y"})
    assert items[1:] == [{"type": "item_reference", "id": "x"}, {"type": "item_reference", "id": "y"}]
    assert references(items) == [(1, "x"), (2, "y")]


def test_items_of_hosted_tools_are_not_shown_to_the_model() -> None:
    items = listed({"role": "user", "content": "a"}, *(sent for sent, _ in ITEMS))
    shown = shown_items(items)
    assert [item["type"] for item in shown] == [item["type"] for item in items if item["type"] not in HOSTED_TYPES]
    assert {"message", "reasoning", "function_call", "custom_tool_call_output"} <= {item["type"] for item in shown}


def test_outputs_and_calls_pair_in_any_order_over_history_and_input() -> None:
    call, output, custom, answer = listed(FUNCTION_CALL, FUNCTION_OUTPUT, CUSTOM_CALL, CUSTOM_OUTPUT)
    check_tool_pairs([], [])
    check_tool_pairs([call, custom], [answer, output])
    check_tool_pairs([], [output, custom, answer, call])
    check_tool_pairs([call, output], [call, output])  # ids of another server may repeat in a later turn


def test_a_cut_call_needs_no_output() -> None:
    cut, output = listed({**FUNCTION_CALL, "status": "incomplete"}, FUNCTION_OUTPUT)
    check_tool_pairs([cut], [])
    check_tool_pairs([cut], [output])


@pytest.mark.parametrize(
    ("history", "items", "named"),
    [
        ([], [FUNCTION_CALL], "no `function_call_output` for the `function_call` of 'f' with call_id 'call_1'"),
        ([CUSTOM_CALL], [], "no `custom_tool_call_output` for the `custom_tool_call` of 'g' with call_id 'call_2'"),
        ([], [FUNCTION_OUTPUT], "no `function_call` with call_id 'call_1'"),
        ([FUNCTION_CALL], [{**CUSTOM_OUTPUT, "call_id": "call_1"}], "no `custom_tool_call` with call_id 'call_1'"),
        ([FUNCTION_CALL, FUNCTION_OUTPUT], [FUNCTION_OUTPUT], "more `function_call_output` items"),
        ([FUNCTION_CALL, FUNCTION_OUTPUT], [FUNCTION_CALL], "no `function_call_output` for"),
    ],
)
def test_an_unpaired_call_is_named(history: list[dict[str, Any]], items: list[dict[str, Any]], named: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        check_tool_pairs(listed(*history), listed(*items))
    assert named in caught.value.message
    assert caught.value.param == "input"


LONG_ID = "rs_" + "x" * 1000


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "a"},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
        {"type": "web_search_call", "action": {}},
    ],
)
def test_an_id_that_is_too_long_is_replaced_by_one_of_ours(item: dict[str, Any]) -> None:
    """Some providers make ids of a thousand characters, which agents replay here."""
    request = parse_create({"input": [{**item, "id": LONG_ID}, {**item, "id": "y" * 256}]})
    first, second = input_items(request)
    assert "id" not in first
    assert second["id"] == "y" * 256
    sent = sent_items(request, response_id="resp_1", used=())
    assert is_client_id(sent[0]["id"])
    assert sent[0]["id"].startswith(item_prefix(sent[0]["type"]))


def test_a_call_and_its_output_may_have_a_call_id_of_any_length() -> None:
    call_id = "call_" + "x" * 1000
    call = {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": call_id, "output": "done"}
    items = input_items(parse_create({"input": [call, output]}))
    check_tool_pairs((), items)
    assert [item["call_id"] for item in items] == [call_id, call_id]
    with pytest.raises(InvalidValue) as raised:
        check_tool_pairs((), items[:1])
    assert len(raised.value.message) < 300
