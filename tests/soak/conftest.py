"""Servers of our own: what is sent stays in them."""

from collections.abc import Iterator

import pytest

from tests.live.conftest import migrated_database, migrated_file, running
from tests.live.server import LiveServer

__all__ = ["migrated_database", "migrated_file", "server"]  # fixtures


@pytest.fixture(scope="session", params=["embedded", "team"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """One a shape."""
    yield from running(request, tmp_path_factory.mktemp(request.param))
