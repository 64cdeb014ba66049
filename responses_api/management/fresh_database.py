"""Prepares the database for commands that are run before the server's first start."""

from django.core.management import call_command
from django.db import connection

from responses_api.models import Project


def ensure_tables() -> None:
    """Create the tables of an empty database. A database with tables is left to `serve` and `migrate`."""
    if Project._meta.db_table not in connection.introspection.table_names():
        call_command("migrate", verbosity=0, interactive=False)
