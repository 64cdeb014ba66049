"""A custom tool's Lark grammar is enforced even if the dialect writes the input as a JSON string."""

import json
import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.calls import CustomFormat, Tool
from inference.calls.pieces import CallClosed, CallInput, merged
from inference.dialects import DIALECTS
from inference.grammars.escaped_lark import Unenforceable, escaped_lark
from tests.inference.dialects.walks import allows, walk

PATCH = """
start: begin hunk+ end  // as an editor of files takes it
begin: "*** Begin\\n"
end: "*** End" LF?
hunk: "*** Add: " filename LF line+
filename: /(.+)/
line: ("+" | "-") /(.*)/ LF -> line
%import common.LF
"""
TOOL = Tool(name="patch", custom=True, format=CustomFormat(syntax="lark", definition=PATCH))
RIGHT = '*** Begin\n*** Add: a "b"\\c.txt\n+\tsay 東京\n-\n*** End\n'


def as_call(text: str) -> str:
    arguments = json.dumps({"input": text}, ensure_ascii=False)
    return f'<tool_call>\n{{"name": "patch", "arguments": {arguments}}}\n</tool_call>'


def test_exactly_the_grammar_s_texts_are_allowed() -> None:
    lark = DIALECTS["hermes"].answer_grammar([TOOL], choice="required")
    assert allows(lark, as_call(RIGHT))
    for wrong in (RIGHT.replace("+", "?"), RIGHT.replace("*** End", ""), RIGHT.replace("Add: ", "Add:\n"), ""):
        assert not allows(lark, as_call(wrong))


@pytest.mark.parametrize("dialect", ["hermes", "llama", "mistral", "kimi", "pythonic"])
@pytest.mark.parametrize("seed", range(3))
def test_the_input_that_comes_out_is_in_the_language(dialect: Any, seed: int) -> None:
    definition = 'start: "a\\n" [WORD] /[^x\\n]{2}/ ("\\t" | QUOTED)\nWORD: /[a-c]+\\\\?/\nQUOTED: /"[!-~]{0,5}"/\n'
    tool = Tool(name="t", custom=True, format=CustomFormat(syntax="lark", definition=definition))
    text, ended = walk(DIALECTS[dialect].answer_grammar([tool], choice="required", parallel=False), random.Random(seed))
    assert ended
    parser = DIALECTS[dialect].new_parser([tool])
    pieces = merged([*parser.feed(text), *parser.flush()])
    assert pieces[-1] == CallClosed()
    raw = "".join(piece.text for piece in pieces if isinstance(piece, CallInput))
    assert re.fullmatch(r'a\n(?:[a-c]+\\?)?[^x\n]{2}(?:\t|"[!-~]{0,5}")', raw)


PATTERNS = [
    r"[a-c]+", r".", r"(?s:.)", r'[^"]', r"\\", r'\"', r"\n", r"[\n\t]", r"\s", r"\S", r"\w\d", r"a\.b", r"[\]\\a]",
    r"\x41", r"[^/]", r"\/", r"[^\n]*", r"(?:x|\")", r"a{2,3}", r'"',
]  # fmt: skip


@given(pattern=st.sampled_from(PATTERNS), text=st.text('/abxA1". \n\t\\é]\x01', max_size=3))
def test_a_rewritten_expression_matches_the_escaped_text(pattern: str, text: str) -> None:
    tool = Tool(name="t", custom=True, format=CustomFormat(syntax="lark", definition=f"start: /{pattern}/"))
    lark = DIALECTS["llama"].answer_grammar([tool], choice="required")
    call = f'{{"name": "t", "parameters": {json.dumps({"input": text}, ensure_ascii=False)}}}'
    assert allows(lark, call) == bool(re.fullmatch(pattern, text, re.ASCII))


@pytest.mark.parametrize(
    "definition",
    ["start: ~A\nA: /a/", "start: %json {}", "%ignore WS", "start: /a/i", "%import common.FOO", r"start: /\bx/"],
)
def test_a_grammar_that_cannot_be_rewritten_is_refused(definition: str) -> None:
    with pytest.raises(Unenforceable):
        escaped_lark(definition)
