"""A JSON text written in steps equals the text written at once."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_api.protocol.json.writer import DECODED_BYTES, as_text, write_json

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=40)


@given(VALUES, st.sampled_from([1, 20, 40, 100, 10_000]))
def test_steps_make_the_same_text(value: Any, step: int) -> None:
    assert write_json(value, step=step) == orjson.dumps(value)


@pytest.mark.parametrize("value", ['😀"\\\n' * 100, [[], {}, ()], {"a": ("b" * 100, {"c": {}})}, [["x" * 60] * 3] * 2])
def test_unusual_values(value: Any) -> None:
    assert write_json(value, step=50) == orjson.dumps(value)


def test_unwritable_values_are_refused_in_the_same_way() -> None:
    for step in (1, 10_000):
        with pytest.raises(TypeError):
            write_json(["a" * 100, object()], step=step)
        with pytest.raises(TypeError):
            write_json(["a" * 100, "\ud800"], step=step)


def test_text_is_decoded_in_steps_that_split_no_character() -> None:
    text = "a" + "é漢😀" * (DECODED_BYTES // 4)
    assert as_text(text.encode()) == text
    assert as_text(b"") == ""
