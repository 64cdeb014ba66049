"""A JSON text read in steps has the same value as read at once, wherever the steps end."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from responses_api.errors import InvalidJson, RequestTooLarge
from responses_api.protocol.json.reader import DIRECT_STORED_BYTES, ReadingLimits, read_json, read_stored

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["\\", '"', '\\"', "[,]{:}", "😀" * 20, "\\u0041", '"' * 30, "\\" * 31, "a" * 50, "漢" * 20])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(SCALARS.map(str), inner),
    max_leaves=40,
)
STEPS = st.sampled_from([1, 2, 3, 7, 16, 40])
PIECES = st.sampled_from([16, 17, 23, 64])
MANY = 10**9


def in_steps(text: bytes, run: int = 1, piece: int = 16, *, max_values: int = MANY) -> Any:
    """The value, read in small steps."""
    limits = ReadingLimits(max_values=max_values, direct_bytes=-1, run_bytes=run, string_bytes=piece)
    return read_json(text, limits=limits)


def same(one: Any, other: Any) -> bool:
    """Whether the values are equal, with the same order of names, and 1, 1.0 and true distinct."""
    return repr(one) == repr(other)


@given(VALUES, st.booleans(), st.sampled_from([None, 1]), STEPS, PIECES)
def test_steps_make_the_same_value(value: Any, is_ascii: bool, indent: int | None, run: int, piece: int) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent).encode("utf-8", "surrogatepass")
    try:
        whole = orjson.loads(text)
    except orjson.JSONDecodeError:
        with pytest.raises(InvalidJson):
            in_steps(text, run, piece)
        return
    assert same(in_steps(text, run, piece), whole)


FRAGMENTS = st.lists(
    st.sampled_from(['"', "\\", "[", "]", "{", "}", ",", ":", "1", "-", "e", "null", '"a"', '"b":', " ", '{"a":[', "é"])
    | st.just("\\u")
    | st.just("\\ud83d")
    | st.just("\\ude00")
    | st.just("0041"),
    max_size=14,
)


@given(FRAGMENTS, STEPS, PIECES)
@example(['{"a":[', "]", "1", "}"], 1, 16)
@example(["[", "1", "[", "]", "]"], 1, 16)
@example(["{", '"b":', "1", '{"a":[', "]", "}", "}"], 1, 16)
@example(["[", "[", "]", ",", "]"], 1, 16)
@example(["[", ",", "]"], 1, 16)
@example(["[", "1", ",", "]"], 1, 16)
@example(["[", "]", ","], 1, 16)
@example(["[", "]", '"a"'], 1, 16)
@example(["[", "}"], 1, 16)
def test_steps_refuse_what_is_not_json(fragments: list[str], run: int, piece: int) -> None:
    text = "".join(fragments).encode()
    try:
        whole = orjson.loads(text)
    except orjson.JSONDecodeError:
        with pytest.raises(InvalidJson, match="The body is not valid JSON: "):
            in_steps(text, run, piece)
    else:
        assert same(in_steps(text, run, piece), whole)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":1,"b":2,"a":[3],"b":"' + b"x" * 40 + b'"}',
        b"[123456789012345678901234567890,18446744073709551615,-9223372036854775808,1e400]",
        b"[1.0,1,true,1e2,-0.0,0.1234567890123456789]",
        b'["' + b"\\ud83d\\ude00" * 30 + b'"]',
        b'["' + b"\\\\" * 30 + b'\\"' * 30 + b'"]',
        b'{"' + b"n" * 60 + b'":"' + b"v" * 60 + b'"}',
        b'"' + b"t" * 100 + b'"',
        b"  [ ]  ",
        b" { } ",
        b"[" * 50 + b"]" * 50,
    ],
)
@pytest.mark.parametrize("run", [1, 2, 5, 30])
def test_unusual_texts(text: bytes, run: int) -> None:
    try:
        whole = orjson.loads(text)
    except orjson.JSONDecodeError:
        with pytest.raises(InvalidJson):
            in_steps(text, run)
    else:
        assert same(in_steps(text, run), whole)


@pytest.mark.parametrize("text", [b'["\\ud83d' + b"a" * 40 + b'"]', b'["' + b"a" * 40 + b'\xff"]', b'["' + b"a" * 40])
def test_text_that_is_not_unicode_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidJson):
        in_steps(text)


def test_a_byte_order_mark_is_ignored() -> None:
    limits = ReadingLimits(max_values=MANY)
    assert read_json(b'\xef\xbb\xbf{"a": 1}', limits=limits) == {"a": 1}


def test_values_are_counted_before_they_are_parsed() -> None:
    assert in_steps(b"[[1,2],{}]", max_values=6) == [[1, 2], {}]
    with pytest.raises(RequestTooLarge, match="more than the 5 JSON values"):
        in_steps(b"[[1,2],{}]", max_values=5)


def test_brackets_and_commas_in_strings_are_not_values() -> None:
    assert in_steps(b'["[[[,,,{{{\\",,"]', max_values=2) == ['[[[,,,{{{",,']


def test_an_error_names_the_place() -> None:
    text = b"[" + b'"abc", ' * 20 + b"nul, 1]"
    with pytest.raises(InvalidJson) as raised:
        in_steps(text, 30)
    assert f"near byte {text.index(b'nul')}" in str(raised.value)


@pytest.mark.parametrize("text", [b"1" * 100, b'{"' + b"n" * 100 + b'":1}', b"[1," + b" " * 100 + b"2]"])
def test_what_is_neither_a_string_nor_an_array_is_bounded(text: bytes) -> None:
    limits = ReadingLimits(max_values=MANY, direct_bytes=-1, run_bytes=8, string_bytes=16, max_gap_bytes=64)
    with pytest.raises(InvalidJson, match="too long"):
        read_json(text, limits=limits)


def test_a_long_string_may_not_grow_in_memory() -> None:
    limits = ReadingLimits(max_values=MANY, direct_bytes=-1, run_bytes=8, string_bytes=16, max_wide_bytes=64)
    assert read_json(b'"' + b"a" * 100 + b'"', limits=limits) == "a" * 100
    with pytest.raises(RequestTooLarge, match="beyond ASCII"):
        read_json(b'"' + b"a" * 100 + "é".encode() + b'"', limits=limits)


def test_reading_can_be_stopped_between_steps() -> None:
    class Left(Exception):
        pass

    steps = 0

    def between() -> None:
        nonlocal steps
        steps += 1
        if steps == 5:
            raise Left

    limits = ReadingLimits(max_values=MANY, direct_bytes=-1, run_bytes=8)
    with pytest.raises(Left):
        read_json(b"[" + b"1," * 1000 + b"1]", limits=limits, between=between)


@pytest.mark.parametrize("direct_bytes", [-1, MANY])
@pytest.mark.parametrize(
    "text", [b"[[],", b"[[] []]", b"[{} 1]", b"[1] 2", b'{"a":[] []}', b'{"a" []}', b'{"a":1 []}', b"[" * 1100]
)
def test_a_text_that_is_not_json_is_refused_in_one_step_and_in_many(text: bytes, direct_bytes: int) -> None:
    limits = ReadingLimits(max_values=MANY, direct_bytes=direct_bytes, run_bytes=1, string_bytes=16)
    with pytest.raises(InvalidJson):
        read_json(text, limits=limits)


@pytest.mark.parametrize("size", [0, DIRECT_STORED_BYTES])
def test_stored_values_are_read_at_any_size(size: int) -> None:
    value = {"a": "é" * size, "b": [1, {"c": None}]}
    assert read_stored(json.dumps(value)) == value
