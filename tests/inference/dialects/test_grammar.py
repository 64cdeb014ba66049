"""Answers that the grammar allows are parsed as complete calls of declared tools, and nothing else."""

import json
import random
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.calls import CustomFormat, Thinking, Tool
from inference.calls.pieces import CallArguments, CallClosed, CallInput, CallOpened, Piece, Reasoning, Text, merged
from inference.dialects import DIALECTS
from tests.inference.dialects.corpus import CORPUS
from tests.inference.dialects.transcripts import PARIS, TOOLS, Transcript
from tests.inference.dialects.walks import allows, reach, walk

STRICT = Tool(
    name="book",
    enforced=True,
    parameters={
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 12},
            "kind": {"enum": ["flat", "house"]},
            "nights": {"type": "integer", "minimum": 1, "maximum": 99},
            "guest": {"$ref": "#/$defs/guest"},
            "code": {"type": "string", "pattern": "^[A-Z]{2}[0-9]+$"},
            "late": {"type": ["boolean", "null"]},
        },
        "required": ["city", "kind", "nights", "guest", "code", "late"],
        "additionalProperties": False,
        "$defs": {
            "guest": {
                "type": "object",
                "properties": {"age": {"type": "number"}, "vip": {"type": "boolean"}},
                "required": ["age", "vip"],
                "additionalProperties": False,
            }
        },
    },
)
DIGITS = Tool(name="dial", custom=True, format=CustomFormat(syntax="regex", definition="[0-9]{3}"))
DECLARED = (*TOOLS, STRICT, DIGITS)
NAMES = list(DIALECTS)
MARKERS = {
    "hermes": "<tool_call>", "qwen-xml": "<tool_call>", "glm": "<tool_call>", "mistral": "[TOOL_CALLS]",
    "deepseek": DIALECTS["deepseek"].parser.starts[0], "deepseek-dsml": DIALECTS["deepseek-dsml"].parser.starts[0],
    "kimi": "<|tool_calls_section_begin|>", "gemma": "<|tool_call>", "function-gemma": "<start_function_call>",
}  # fmt: skip
BARE = {"llama": '{"name', "pythonic": "[", "harmony": " to=functions."}


def read(dialect: Any, text: str, tools: Any = DECLARED, thinking: Thinking | None = None) -> list[Piece]:
    parser = DIALECTS[dialect].new_parser(tools, thinking)
    return merged([*parser.feed(text), *parser.flush()])


def check_calls(pieces: list[Piece], *, ended: bool) -> int:
    """All calls are complete, but for the last of a text that did not end, and right; how many they are."""
    count, opened, text = 0, None, ""
    for number, piece in enumerate(pieces):
        match piece:
            case CallOpened():
                count, opened, text = count + 1, piece, ""
            case CallArguments() | CallInput():
                text += piece.text
            case CallClosed(complete):
                assert complete or (not ended and number == len(pieces) - 1)
                assert opened is not None
                if complete:
                    check_call(opened, text)
            case Text():
                assert not [mark for mark in MARKERS.values() if mark in piece.text]
    return count


def check_call(opened: CallOpened, text: str) -> None:
    if opened.name == DIGITS.name:
        assert len(text) == 3
        assert text.isdecimal()
    elif not opened.custom:
        arguments = json.loads(text)
        assert isinstance(arguments, dict)
        if opened.name == STRICT.name:
            jsonschema.validate(arguments, dict(STRICT.parameters))


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize("seed", range(4))
def test_what_required_allows_is_calls(dialect: Any, seed: int) -> None:
    lark = DIALECTS[dialect].answer_grammar(DECLARED, choice="required")
    text, ended = walk(lark, random.Random(seed))
    pieces = read(dialect, text)
    assert check_calls(pieces, ended=ended) or not ended
    said = [piece for piece in pieces if isinstance(piece, Text) and piece.phase != "commentary"]
    assert not said or not ended


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize("seed", range(4))
def test_a_strict_tool_gets_arguments_that_its_schema_describes(dialect: Any, seed: int) -> None:
    start = {"harmony": " to=functions.book"}.get(dialect, "")
    lark = DIALECTS[dialect].answer_grammar([STRICT], choice="required", parallel=False)
    text, ended = walk(lark, random.Random(seed), start=start, steps=1500)
    assert ended, text
    assert check_calls(read(dialect, text, [STRICT]), ended=True) == 1


@pytest.mark.parametrize("dialect", NAMES)
def test_a_custom_tool_gets_input_that_its_format_describes(dialect: Any) -> None:
    start = {"harmony": " to=functions.dial"}.get(dialect, "")
    lark = DIALECTS[dialect].answer_grammar([DIGITS], choice="required", parallel=False)
    text, ended = walk(lark, random.Random(1), start=start)
    assert ended, text
    assert check_calls(read(dialect, text, [DIGITS]), ended=True) == 1


@pytest.mark.parametrize("dialect", list(MARKERS))
@pytest.mark.parametrize("seed", range(3))
def test_a_marker_in_free_text_leads_to_a_call(dialect: Any, seed: int) -> None:
    lark = DIALECTS[dialect].answer_grammar(DECLARED)
    text, ended = walk(lark, random.Random(seed), start=f"Hello <b> {MARKERS[dialect]}")
    pieces = read(dialect, text)
    assert pieces[0] == Text("Hello <b>")
    assert check_calls(pieces, ended=ended) or not ended


@pytest.mark.parametrize("dialect", NAMES)
def test_text_alone_is_allowed_unless_a_call_is_required(dialect: Any) -> None:
    text = "Hello, <b> [1] {x} 東京!"
    said = f"<|channel|>final<|message|>{text}" if dialect == "harmony" else text
    assert allows(DIALECTS[dialect].answer_grammar(DECLARED), said)
    assert allows(DIALECTS[dialect].answer_grammar(DECLARED, parallel=False), said)
    assert not allows(DIALECTS[dialect].answer_grammar(DECLARED, choice="required"), said)


@pytest.mark.parametrize("dialect", NAMES)
def test_an_undeclared_tool_cannot_be_named(dialect: Any) -> None:
    named = {
        "hermes": '<tool_call>\n{"name": "rm',
        "qwen-xml": "<tool_call>\n<function=rm",
        "glm": "<tool_call>rm",
        "llama": '{"name": "rm',
        "mistral": "[TOOL_CALLS]rm",
        "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.rm",
        "harmony": "<|channel|>commentary to=functions.rm",
        "gemma": "<|tool_call>call:rm",
        "function-gemma": "<start_function_call>call:rm",
        "pythonic": "[rm",
        "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>rm",  # noqa: RUF001
        "deepseek-dsml": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="rm',  # noqa: RUF001
    }[dialect]
    assert reach(DIALECTS[dialect].answer_grammar(DECLARED), named) < len(named.encode())
    right = named.removesuffix("rm") + "now"
    assert reach(DIALECTS[dialect].answer_grammar(DECLARED), right) == len(right.encode())


CANONICAL = frozenset(
    {
        "one call", "strings with markup", "nested", "unicode", "typed values", "no arguments", "no parameters", "V3.1",
        "R1", "namespace", "custom", "named", "text before", "two calls", "a call, the channel first",
        "a call, the recipient first",
    }
)  # fmt: skip
OTHER_SPELLINGS = {"hermes: no arguments", "gemma: nested", "pythonic: nested", "pythonic: unicode"}
"""Read, and not what the grammar makes a model write."""


@pytest.mark.parametrize(
    "transcript", [t for t in CORPUS if t.name in CANONICAL and str(t) not in OTHER_SPELLINGS], ids=str
)
def test_documented_transcripts_are_allowed(transcript: Transcript) -> None:
    text = transcript.text.removesuffix("<|call|>")  # which ends the answer
    lark = DIALECTS[transcript.dialect].answer_grammar(TOOLS, thinking=transcript.thinking)
    assert reach(lark, text) == len(text.encode()), text.encode()[reach(lark, text) :]


@pytest.mark.parametrize("dialect", ["hermes", "mistral", "kimi", "llama", "deepseek"])
def test_without_parallel_calls_the_answer_ends_after_the_first(dialect: Any) -> None:
    transcript = next(t for t in CORPUS if t.dialect == dialect and t.name in ("one call", "named", "V3.1"))
    text = transcript.text
    one = DIALECTS[dialect].answer_grammar(TOOLS, parallel=False)
    if dialect == "deepseek":  # V3.1's has two
        assert reach(one, text) < len(text.encode())
        return
    assert allows(one, text)
    assert not allows(one, f"{text} and")
    assert not allows(one, f"{text}\n{text}")


class TestThinking:
    def test_a_marker_in_thinking_is_not_a_call(self) -> None:
        lark = DIALECTS["hermes"].answer_grammar(TOOLS, choice="required", thinking=Thinking(opened=True))
        text = 'A <tool_call> of rm?\n</think>\n\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
        assert allows(lark, text)
        assert read("hermes", text, TOOLS, Thinking(opened=True))[0] == Reasoning("A <tool_call> of rm?")

    @pytest.mark.parametrize("choice", ["auto", "required"])
    def test_a_block_may_come_first(self, choice: Any) -> None:
        lark = DIALECTS["hermes"].answer_grammar(TOOLS, choice=choice, thinking=Thinking())
        call = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
        assert allows(lark, f"<think>\nHm\n</think>\n\n{call}")
        assert allows(lark, call)
        assert not allows(lark, f"<think>{call}")

    def test_text_has_no_thinking_markers(self) -> None:
        lark = DIALECTS["hermes"].answer_grammar(TOOLS, thinking=Thinking(opened=True))
        assert allows(lark, "Hm</think>Yes")
        assert not allows(lark, "Hm</think>Yes</think>")
        assert not allows(lark, "Hm</think>Yes<think>")


def test_an_answer_in_a_given_form_or_a_call() -> None:
    lark = DIALECTS["hermes"].answer_grammar(TOOLS, answer='"yes"')
    assert allows(lark, "yes")
    assert allows(lark, '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>')
    assert not allows(lark, "no")


def test_without_tools_an_answer_in_a_given_form_follows_the_thinking() -> None:
    lark = DIALECTS["hermes"].answer_grammar([], answer='"yes"', thinking=Thinking())
    assert allows(lark, "yes")
    assert allows(lark, "<think>\nHm\n</think>\n\nyes")
    assert not allows(lark, "<think>\nHm\n</think>\n\nno")
    channels = DIALECTS["harmony"].answer_grammar([], answer='"yes"')
    assert allows(channels, "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>yes")
    with pytest.raises(ValueError, match="needs a tool"):
        DIALECTS["hermes"].answer_grammar([])


def test_a_line_may_end_after_the_calls() -> None:
    """Nothing more is asked for by it."""
    lark = DIALECTS["hermes"].answer_grammar(TOOLS, choice="required")
    call = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    assert allows(lark, f"{call}\n")
    assert allows(lark, f"{call}\n{call}\n")
    assert not allows(lark, f"{call}\nYes")


def test_a_parameter_may_refer_to_the_whole_schema() -> None:
    """Where each parameter is written by itself, too."""
    tree = {
        "type": "object",
        "properties": {"child": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "same": {"$ref": "#/properties/child"}},
        "required": ["child"],
        "additionalProperties": False,
    }
    lark = DIALECTS["qwen-xml"].answer_grammar([Tool(name="grow", parameters=tree, enforced=True)], choice="required")
    call = "<tool_call>\n<function=grow>\n<parameter=child>\n%s\n</parameter>\n</function>\n</tool_call>"
    assert allows(lark, call % '{"child": {"child": null}}')
    assert not allows(lark, call % '{"child": 5}')


def test_a_lark_format_where_values_are_written_raw() -> None:
    tool = Tool(
        name="patch", custom=True, format=CustomFormat(syntax="lark", definition='start: "*" WORD "}"\nWORD: /[a-z]+/')
    )
    lark = DIALECTS["qwen-xml"].answer_grammar([tool], choice="required")
    text = "<tool_call>\n<function=patch>\n<parameter=input>\n*abc}\n</parameter>\n</function>\n</tool_call>"
    assert allows(lark, text)
    assert not allows(lark, text.replace("abc", "12"))


def test_special_tokens_are_written_as_tokens() -> None:
    tokens = {"<tool_call>": 7, "</tool_call>": 8, "<think>": 9, "</think>": 10}
    lark = DIALECTS["hermes"].answer_grammar(TOOLS, tokens=tokens, thinking=Thinking())
    assert {f"<[{number}]>" for number in tokens.values()} <= set(lark.split())
    assert "tool_call>" not in lark


def test_mistral_writes_a_list_where_it_has_no_token_for_arguments() -> None:
    lark = DIALECTS["mistral"].answer_grammar(TOOLS, tokens={"[TOOL_CALLS]": 5}, choice="required")
    assert '"{\\"name\\": \\"now\\", \\"arguments\\": "' in lark


@settings(max_examples=30)
@given(
    names=st.lists(st.from_regex(r"[A-Za-z0-9_-]{1,20}", fullmatch=True), min_size=1, max_size=5, unique=True),
    dialect=st.sampled_from(NAMES),
    seed=st.integers(0, 1000),
)
def test_any_tool_set(names: list[str], dialect: Any, seed: int) -> None:
    tools = [Tool(name=name, namespace="ns" if len(name) % 3 == 0 else None) for name in names]
    text, ended = walk(DIALECTS[dialect].answer_grammar(tools, choice="required"), random.Random(seed), steps=300)
    assert check_calls(read(dialect, text, tools), ended=ended) or not ended


def test_many_tools() -> None:
    tools = [Tool(name=f"tool_{number}", parameters={"type": "object"}) for number in range(128)]
    lark = DIALECTS["hermes"].answer_grammar(tools)
    assert allows(lark, f'<tool_call>\n{{"name": "tool_127", "arguments": {json.dumps(PARIS)}}}\n</tool_call>')
