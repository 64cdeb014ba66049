"""Fixtures that start servers: as few as possible, as each takes seconds of processor time."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest

from inference import ModelEntry
from tests.services import fresh_database

from .server import DATABASE_FILE, LiveServer, embedded, running, team

SHAPES = ["embedded", "team"]
FEW_CONNECTIONS = {"RESPONSES_DATABASE_CONNECTIONS": "6"}
"""Several teams share one PostgreSQL in the tests."""

Shape = Literal["embedded", "team"]
Launch = Callable[..., AbstractContextManager[LiveServer]]
"""`launch(shape, **settings)`: a running server with all tables. It is stopped at the end, with status 0."""


@pytest.fixture(scope="session")
def launch(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Launch:
    """Starts a server; skips the test if a service of the shape is missing."""

    @contextmanager
    def start(shape: Shape, *, measured: bool = False, **settings: str) -> Iterator[LiveServer]:
        data_dir = tmp_path_factory.mktemp(shape)
        if shape == "embedded":
            shutil.copy(request.getfixturevalue("migrated_file"), data_dir)
            server = embedded(data_dir, **settings)
            server.measured = measured
            with running(server):
                yield server
            return
        redis_url = request.getfixturevalue("redis_url")
        template, key = request.getfixturevalue("migrated_database")
        with fresh_database(request.getfixturevalue("postgres_server"), template=template) as url:
            server = team(
                data_dir, database_url=url, redis_url=redis_url, web=2, workers=2, **FEW_CONNECTIONS | settings
            )
            server.key = key
            server.measured = measured
            with running(server):
                yield server

    return start


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with all tables, which servers start from: making them takes a second each time."""
    server = embedded(tmp_path_factory.mktemp("migrated"))
    server.manage("migrate", "--verbosity", "0")
    return server.data_dir / DATABASE_FILE


@pytest.fixture(scope="session")
def migrated_database(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The name of such a PostgreSQL database, and the key in it."""
    with fresh_database(postgres_server) as url:
        server = team(
            tmp_path_factory.mktemp("migrated"), database_url=url, redis_url="redis://127.0.0.1", web=2, workers=2
        )
        key = server.make_key("default")  # which makes the tables, too
        yield urlsplit(url).path.removeprefix("/"), key


@pytest.fixture(scope="session")
def real_server(default_model: ModelEntry, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """`make serve` with the default model, already downloaded."""
    data_dir = tmp_path_factory.mktemp("real")
    (data_dir / "models").symlink_to(default_model.path.parent)
    with running(embedded(data_dir, RESPONSES_ENGINE="mlx")) as server:
        yield server
