"""``manage.py migrate``: Django's, but safe to run on several machines at once."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.commands import migrate
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

LOCK = 0x6D6C7872
"""The key of PostgreSQL's advisory lock."""


class Command(migrate.Command):
    """Machines of a team that start together migrate one after the other; the second one has nothing to do."""

    def handle(self, *args: Any, database: str, **options: Any) -> None:
        with migrating(connections[database]):
            super().handle(*args, database=database, **options)


@contextmanager
def migrating(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Lock the migrations of a database, until the block ends."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        try:
            yield
        finally:
            # A connection that broke has released the lock.
            if connection.is_usable():
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
        return
    file = Path(connection.settings_dict["NAME"])
    if not file.parent.is_dir() or connection.is_in_memory_db():  # type: ignore[attr-defined]
        yield
        return
    with file.with_name(f"{file.name}.migrate-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
