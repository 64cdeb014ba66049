"""The services that tests use if this machine has them: at their standard ports, or where a variable points.

A test asks for `postgres_url`, `redis_url` or `amqp_url`. Without the service it is skipped with a reason that begins
"needs"; under `RESPONSES_TEST_STRICT=1`, as in CI, such a skip is a failure.
"""

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql


def listens(host: str, port: int) -> bool:
    """Whether something accepts connections at this address."""
    try:
        with socket.create_connection((host, port), timeout=2):
            return True
    except OSError:
        return False


def find_postgres() -> str | None:
    """The URL of a PostgreSQL whose role may create databases, or None."""
    given = os.environ.get("TEST_DATABASE_URL")
    for url in (
        [given] if given else ["postgresql://127.0.0.1:5432/postgres", "postgresql://postgres@127.0.0.1:5432/postgres"]
    ):
        try:
            with psycopg.connect(url, connect_timeout=3) as connection:
                row = connection.execute(
                    "SELECT rolcreatedb OR rolsuper, current_user FROM pg_roles WHERE rolname = current_user"
                ).fetchone()
        except psycopg.OperationalError:
            continue
        if row and row[0]:
            parts = urlsplit(url)
            netloc = parts.netloc if "@" in parts.netloc else f"{row[1]}@{parts.netloc}"
            return urlunsplit(parts._replace(netloc=netloc))
    return None


@pytest.fixture(scope="session")
def postgres_server() -> str:
    """The URL of a PostgreSQL whose role may create databases."""
    url = find_postgres()
    if url is None:
        pytest.skip("needs PostgreSQL with a role that may create databases: set TEST_DATABASE_URL")
    return url


@contextmanager
def fresh_database(server: str, *, template: str = "template1") -> Iterator[str]:
    """The URL of an empty database on this PostgreSQL, or of a copy of another, dropped afterwards."""
    name = f"responses_test_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        command = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        connection.execute(command.format(sql.Identifier(name), sql.Identifier(template)))
    try:
        yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of an empty PostgreSQL database, dropped after the test."""
    with fresh_database(postgres_server) as url:
        yield url


def _service_url(variable: str, default: str, name: str) -> str:
    url = os.environ.get(variable) or default
    parts = urlsplit(url)
    if not listens(parts.hostname or "127.0.0.1", parts.port or urlsplit(default).port or 0):
        pytest.skip(f"needs {name}: set {variable}")
    return url


@pytest.fixture(scope="session")
def redis_url() -> str:
    """The URL of a Redis, with database 15 if the URL names none."""
    return _service_url("TEST_REDIS_URL", "redis://127.0.0.1:6379/15", "Redis")


@pytest.fixture(scope="session")
def amqp_url() -> str:
    """The URL of a RabbitMQ."""
    return _service_url("TEST_AMQP_URL", "amqp://guest:guest@127.0.0.1:5672//", "RabbitMQ")
