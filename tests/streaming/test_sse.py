"""Frames are valid server-sent events."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from responses_api.streaming import DONE, PING, comment, encode, encode_event, frame


def test_frame_names_its_type_and_ends_with_a_blank_line() -> None:
    event: Any = {"type": "response.output_text.delta", "sequence_number": 4, "delta": "a"}
    kind, text = encode_event(event)
    assert frame(kind, text) == encode(event)
    assert encode(event) == (
        b"event: response.output_text.delta\n"
        b'data: {"type":"response.output_text.delta","sequence_number":4,"delta":"a"}\n\n'
    )


def test_end_and_keep_alive() -> None:
    """The keep-alive is a comment, which readers drop."""
    assert (DONE, comment(PING)) == (b"data: [DONE]\n\n", b": ping\n\n")


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_text_breaks_a_frame(text: str) -> None:
    """Line breaks of any kind in a delta leave `data:` one line that reads back the same."""
    event: Any = {"type": "t", "delta": text}
    lines = encode(event).split(b"\n")
    assert (lines[0], lines[2:]) == (b"event: t", [b"", b""])
    assert b"\r" not in lines[1]
    assert json.loads(lines[1].removeprefix(b"data: ")) == event
