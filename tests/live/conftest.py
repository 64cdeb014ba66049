"""Servers that tests talk to through the doors users take."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.services import fresh_database

from .server import LiveServer, embedded, team

DATABASE_FILE = "responses.sqlite3"


@pytest.fixture(scope="session", params=["embedded", "team"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """One server per shape for all tests that leave it as it is. A team has one key, the embedded one is open."""
    yield from running(request, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session", params=["embedded", "team"])
def keyed_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Like ``server``, but keys may be made on it, and requests of tests carry none that they don't name."""
    for server in running(request, tmp_path_factory.mktemp(request.param)):
        server.key = ""
        yield server


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with all tables, for servers to begin with: making them takes a second each time."""
    server = embedded(tmp_path_factory.mktemp("migrated"))
    server.manage("migrate", "--verbosity", "0")
    return server.data_dir / DATABASE_FILE


@pytest.fixture(scope="session")
def migrated_database(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The name of a PostgreSQL database with all tables, likewise, and the key that is in it."""
    with fresh_database(postgres_server) as url:
        server = team(tmp_path_factory.mktemp("migrated"), database_url=url, redis_url="redis://127.0.0.1")
        key = server.make_key("default")  # which makes the tables, too
        yield urlsplit(url).path.removeprefix("/"), key


def running(request: pytest.FixtureRequest, data_dir: Path, **settings: str) -> Iterator[LiveServer]:
    """A server of the fixture's shape, stopped at the end; its status must be 0."""
    if request.param == "embedded":
        shutil.copy(request.getfixturevalue("migrated_file"), data_dir)
        yield from started(embedded(data_dir, **settings))
        return
    redis_url = request.getfixturevalue("redis_url")
    template, key = request.getfixturevalue("migrated_database")
    with fresh_database(request.getfixturevalue("postgres_server"), template=template) as url:
        server = team(data_dir, database_url=url, redis_url=redis_url, **settings)
        server.key = key
        yield from started(server)


def started(server: LiveServer) -> Iterator[LiveServer]:
    """Start it; at the end it must stop with status 0."""
    server.start()
    try:
        yield server
    finally:
        status = server.stop()
    assert status == 0, server.log.read_text()[-4000:]
