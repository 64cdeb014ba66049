"""Delays are measured per token from the engine to the client, also if a delta has several tokens."""

import pytest

from tests.perf.load.streams import Stream
from tests.perf.measures.events import delays_of


def test_each_token_of_a_delta_has_its_own_delay() -> None:
    """The first token has no space before it."""
    stream = Stream(sent=0.0, times=[1.0, 2.0], pieces=[b"1 2", b" 3"])
    assert delays_of(stream, [0.5, 0.9, 1.5]) == pytest.approx([0.5, 0.1, 0.5])


def test_a_token_that_never_arrived_is_an_error() -> None:
    """Otherwise the longest delay would be missing."""
    stream = Stream(sent=0.0, times=[1.0], pieces=[b"1 2"])
    with pytest.raises(ValueError, match="2 of 3 tokens have arrived"):
        delays_of(stream, [0.5, 0.9, 1.5])
