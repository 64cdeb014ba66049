"""Database work for the event loop: a few threads that keep their connections.

Django's own thread-sensitive executor runs everything of a process on one thread; a slow query there would hold up
every stream. Readers look at the logs of jobs on threads of their own, so that requests being admitted can't keep them
waiting.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from django.db import close_old_connections, connections

P = ParamSpec("P")
T = TypeVar("T")

_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="database")
_reading_threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="reading")


def use_own_connection() -> None:
    """Give the calling thread a database connection outside of the pool, which it keeps.

    Whoever renews leases must not wait for a connection that others hold.
    """
    connection = connections.create_connection("default")
    options = {name: value for name, value in connection.settings_dict["OPTIONS"].items() if name != "pool"}
    connection.settings_dict = {**connection.settings_dict, "OPTIONS": options, "CONN_MAX_AGE": None}
    connections["default"] = connection


def with_fresh_connection(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call ``function`` so that neither a dead connection is used nor a pooled one kept afterwards."""
    close_old_connections()
    try:
        return function(*args, **kwargs)
    finally:
        close_old_connections()


async def in_database_thread(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run ``function`` on a database thread and await its result."""
    return await _run(_threads, function, *args, **kwargs)


async def in_reading_thread(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """The same on a thread for those who read a stream: nothing but short queries may run there."""
    return await _run(_reading_threads, function, *args, **kwargs)


async def _run(threads: ThreadPoolExecutor, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    call = asyncio.get_running_loop().run_in_executor(threads, lambda: with_fresh_connection(function, *args, **kwargs))
    return await call
