"""The databases as the settings declare them."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections
from django.db.utils import load_backend

from responses_site.env import Environment
from responses_site.settings.databases import databases

SECRET = "abcdefghij" * 5


@pytest.mark.django_db
def test_sqlite_reads_while_another_connection_writes() -> None:
    """Write-ahead log, one sync per checkpoint, foreign keys enforced."""
    with connection.cursor() as cursor:
        shown = [
            cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    assert shown == ["wal", 1, 1]


def test_a_path_with_odd_characters_is_a_path(tmp_path) -> None:
    """The default database's name never goes through a URL."""
    odd = tmp_path / "a b#c?d%20"
    config = databases(Environment.read({"RESPONSES_DATA_DIR": str(odd)}))["default"]
    assert config["NAME"] == odd / "responses.sqlite3"


def test_postgresql_is_pooled_and_takes_the_options_of_its_url(postgres_url: str, django_db_blocker) -> None:
    """Threads share few connections, returned between uses, and the URL's own options apply."""
    url = f"{postgres_url}?application_name=pooled"
    environment = Environment.read({"DATABASE_URL": url, "RESPONSES_DATABASE_CONNECTIONS": "5"})
    config = databases(environment)["default"]
    connections.settings["pooled"] = connections.configure_settings({"default": {}, "pooled": config})["pooled"]
    wrapper = load_backend(config["ENGINE"]).DatabaseWrapper(connections.settings["pooled"], "pooled")

    def ask() -> str:
        own = load_backend(config["ENGINE"]).DatabaseWrapper(connections.settings["pooled"], "pooled")
        try:
            with own.cursor() as cursor:
                cursor.execute("SHOW application_name")
                return cursor.fetchone()[0]
        finally:
            own.close()

    try:
        with django_db_blocker.unblock(), ThreadPoolExecutor(24) as threads:
            names = list(threads.map(lambda _: ask(), range(48)))
        assert set(names) == {"pooled"}
        assert wrapper.pool.get_stats()["pool_size"] <= 5
    finally:
        wrapper.close_pool()
        del connections.settings["pooled"]
