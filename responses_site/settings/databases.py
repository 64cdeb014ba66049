"""The database: SQLite for one process, PostgreSQL for a team."""

from typing import Any

import environ

from responses_site.env import Environment

SQLITE_OPTIONS = {
    # WAL: readers never wait for the writer. IMMEDIATE: a writer takes its lock at once, and can't fail on an upgrade.
    # secure_delete: deleted content is overwritten, so that `store: false` leaves none in the file.
    "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON;",
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
}
POSTGRESQL_POOL = {"min_size": 1, "timeout": 10, "max_idle": 60}
# The heartbeats of the web server and of the worker have their own connections.
HEARTBEAT_CONNECTIONS = 2


def databases(environment: Environment) -> dict[str, dict[str, Any]]:
    """Django's `DATABASES`."""
    if environment.database_url:
        config: dict[str, Any] = dict(environ.Env.db_url_config(environment.database_url))
    else:
        config = {"ENGINE": "django.db.backends.sqlite3", "NAME": environment.data_dir / "responses.sqlite3"}
    options = dict(config.pop("OPTIONS", {}))
    if environment.postgresql:
        # The pool has the persistent connections, so Django must not have any (CONN_MAX_AGE).
        pool = {**POSTGRESQL_POOL, "max_size": environment.database_connections - HEARTBEAT_CONNECTIONS}
        config |= {"CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": True, "OPTIONS": {"pool": pool, **options}}
    else:
        # Opening a database file costs more than most queries, so connections are persistent.
        config |= {"CONN_MAX_AGE": None, "OPTIONS": {**SQLITE_OPTIONS, **options}}
    return {"default": config}
