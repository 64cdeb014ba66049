"""The pool of PostgreSQL connections."""

from django.db import connection


def renew_pooled_connections() -> None:
    """Replace this process's pooled connections, those in use as soon as they are returned.

    A connection's buffers in libpq double until the largest row or parameter fits, and are freed only with it.
    """
    if pool := getattr(connection, "pool", None):
        pool.drain()
