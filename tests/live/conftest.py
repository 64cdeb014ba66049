"""Servers that tests talk to through the doors users take."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services import fresh_database

from .server import LiveServer, embedded, team


@pytest.fixture(scope="session", params=["embedded", "team"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """One open server a shape for all tests that leave it as it is. No key exists."""
    yield from running(request, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session", params=["embedded", "team"])
def keyed_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Like ``server``, but keys may be made on it."""
    yield from running(request, tmp_path_factory.mktemp(request.param))


def running(request: pytest.FixtureRequest, data_dir: Path, **settings: str) -> Iterator[LiveServer]:
    """A server of the fixture's shape, stopped at the end; its status must be 0."""
    if request.param == "embedded":
        yield from started(embedded(data_dir, **settings))
        return
    redis_url = request.getfixturevalue("redis_url")
    with fresh_database(request.getfixturevalue("postgres_server")) as url:
        yield from started(team(data_dir, database_url=url, redis_url=redis_url, **settings))


def started(server: LiveServer) -> Iterator[LiveServer]:
    """Start it; at the end it must stop with status 0."""
    server.start()
    try:
        yield server
    finally:
        status = server.stop()
    assert status == 0, server.log.read_text()[-4000:]
