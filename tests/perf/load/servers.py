"""Servers for a measurement, and where they keep their data."""

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.live.server import LiveServer, embedded
from tests.services import find_postgres, fresh_database, listens

from .streams import Target

REDIS_URL = os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/14")


@contextmanager
def started(server: LiveServer) -> Iterator[LiveServer]:
    """A server for the time of a measurement."""
    server.start()
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def database() -> Iterator[str | None]:
    """The URL of a fresh PostgreSQL database; None where there is no server."""
    base = find_postgres()
    if base is None:
        yield None
        return
    with fresh_database(base) as url:
        yield url


def redis_listens() -> bool:
    """Whether there is a Redis."""
    parts = urlsplit(REDIS_URL)
    return listens(parts.hostname or "127.0.0.1", parts.port or 6379)


@contextmanager
def embedded_server(data_dir: Path, settings: Mapping[str, str], *, models: Path | None = None) -> Iterator[LiveServer]:
    """The embedded shape, with the models and the libraries of another data directory."""
    with started(embedded(_with_models(data_dir, models), **settings)) as server:
        yield server


@contextmanager
def small_team(
    data_dir: Path, settings: Mapping[str, str], *, models: Path | None = None
) -> Iterator[LiveServer | None]:
    """The team shape with one web and one worker process; None where PostgreSQL or Redis is missing."""
    with database() as url:
        if url is None or not redis_listens():
            yield None
            return
        server = LiveServer(
            command=["manage.py", "team", "--web", "1", "--workers", "1"],
            data_dir=_with_models(data_dir, models),
            settings={
                "DATABASE_URL": url,
                # Servers that share a broker take each other's messages.
                "REDIS_URL": urlsplit(REDIS_URL)._replace(path=f"/{secrets.choice(range(1, 16))}").geturl(),
                "RESPONSES_SECRET_KEY": secrets.token_urlsafe(48),
                **settings,
            },
        )
        with started(server):
            yield server


def target_of(server: LiveServer) -> Target:
    """Where to send requests to a server of this project."""
    return Target(server.url, server.key)


def _with_models(data_dir: Path, models: Path | None) -> Path:
    """Make the directory; its models are those of ``models``, its database is its own."""
    data_dir.mkdir(parents=True, exist_ok=True)
    for name in ("models", "libraries") if models is not None else ():
        assert models is not None
        (models / name).mkdir(parents=True, exist_ok=True)
        if not (data_dir / name).exists():
            (data_dir / name).symlink_to(models / name)
    return data_dir
