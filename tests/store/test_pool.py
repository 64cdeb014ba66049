"""The pool of PostgreSQL connections."""

from collections.abc import Iterator
from typing import Any

import environ
import pytest
from django.db import connections
from django.db.backends.postgresql.base import DatabaseWrapper

from responses_api.database import pool
from responses_site.settings.databases import POSTGRESQL_POOL


@pytest.fixture
def pooled(postgres_server: str) -> Iterator[Any]:
    """A connection from a pool of one: a larger pool may open a second connection while the first one is opening."""
    settings = {
        **connections.settings["default"],
        **environ.Env.db_url_config(postgres_server),
        "CONN_MAX_AGE": 0,
        "OPTIONS": {"pool": {**POSTGRESQL_POOL, "max_size": 1}},
    }
    connection = DatabaseWrapper(settings, alias="pooled")
    yield connection
    connection.close()
    connection.close_pool()


def backend_process(connection: Any) -> int:
    """The id of the PostgreSQL process behind a connection, which is taken from the pool and returned."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    connection.close()
    return int(pid)


@pytest.mark.django_db
def test_pooled_connections_are_replaced(pooled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their buffers are freed; the pool continues with new connections."""
    monkeypatch.setattr(pool, "connection", pooled)
    before = backend_process(pooled)
    assert backend_process(pooled) == before
    pool.renew_pooled_connections()
    assert backend_process(pooled) != before


def test_without_a_pool_there_is_nothing_to_replace() -> None:
    """SQLite has no pool."""
    pool.renew_pooled_connections()
