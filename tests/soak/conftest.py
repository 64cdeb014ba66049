"""Separate servers, as these tests fill their stores."""

from collections.abc import Iterator

import pytest

from tests.live.launch import SHAPES, Launch
from tests.live.server import LiveServer


@pytest.fixture(scope="session", params=SHAPES)
def server(request: pytest.FixtureRequest, launch: Launch) -> Iterator[LiveServer]:
    """One per shape."""
    with launch(request.param) as server:
        yield server
