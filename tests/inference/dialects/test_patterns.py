"""Patterns and grammars of callers are prepared for the decoder in linear time."""

import time

import pytest

from inference.grammars.escaped_lark import Unenforceable, escaped_lark
from inference.grammars.patterns import for_json_strings

QUICK = 2.0
"""Seconds. What is quadratic takes ten times as long for the same text."""


@pytest.mark.parametrize("piece", ['[^"', "[^", "[^\\\\", '[^]"', "\\"])
def test_a_pattern_is_made_safe_in_linear_time(piece: str) -> None:
    began = time.thread_time()
    assert for_json_strings(piece * (64_000 // len(piece)))
    assert time.thread_time() - began < QUICK


@pytest.mark.parametrize("definition", ["[^a]", '[^"', "a[^", ""])
def test_a_class_that_leaves_out_neither_quote_nor_backslash_stays(definition: str) -> None:
    assert for_json_strings(definition) == definition


@pytest.mark.parametrize(
    "definition",
    [
        'start: "' + '\\"' * 32_000,
        "start: " + "/[" * 32_000,
        "start: /" + "[[:a" * 16_000 + "/",
        "start: /" + "." * 64_000 + "/",
    ],
    ids=lambda definition: definition[:12],
)
def test_a_grammar_that_can_t_be_rewritten_is_refused_in_linear_time(definition: str) -> None:
    began = time.thread_time()
    with pytest.raises(Unenforceable) as refused:
        escaped_lark(definition)
    assert time.thread_time() - began < QUICK
    assert len(str(refused.value)) < 200
