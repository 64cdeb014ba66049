"""Servers for a measurement, with their data directories and services."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.live.server import LiveServer, embedded, running, team
from tests.services import find_postgres, fresh_database, listens

from .streams import Target

REDIS_URL = os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/14")


@contextmanager
def database() -> Iterator[str | None]:
    """The URL of an empty PostgreSQL database; None if there is no PostgreSQL."""
    base = find_postgres()
    if base is None:
        yield None
        return
    with fresh_database(base) as url:
        yield url


def redis_listens() -> bool:
    """Whether a Redis is available."""
    parts = urlsplit(REDIS_URL)
    return listens(parts.hostname or "127.0.0.1", parts.port or 6379)


@contextmanager
def embedded_server(data_dir: Path, settings: Mapping[str, str], *, models: Path | None = None) -> Iterator[LiveServer]:
    """The embedded shape, with the models and libraries of another data directory."""
    with running(embedded(_with_models(data_dir, models), **settings)) as server:
        yield server


@contextmanager
def small_team(
    data_dir: Path, settings: Mapping[str, str], *, models: Path | None = None
) -> Iterator[LiveServer | None]:
    """The team shape with one web and one worker process; None if PostgreSQL or Redis is missing."""
    with database() as url:
        if url is None or not redis_listens():
            yield None
            return
        directory = _with_models(data_dir, models)
        with running(team(directory, database_url=url, redis_url=REDIS_URL, web=1, workers=1, **settings)) as server:
            yield server


def target_of(server: LiveServer) -> Target:
    """The target of requests to a server of this project."""
    return Target(server.url, server.key)


def _with_models(data_dir: Path, models: Path | None) -> Path:
    """Create a data directory that links to the models and libraries of another one."""
    data_dir.mkdir(parents=True, exist_ok=True)
    for name in ("models", "libraries") if models is not None else ():
        assert models is not None
        (models / name).mkdir(parents=True, exist_ok=True)
        if not (data_dir / name).exists():
            (data_dir / name).symlink_to(models / name)
    return data_dir
