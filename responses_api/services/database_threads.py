"""Database work for the event loop: a few threads that keep their connections.

Django's own thread-sensitive executor runs everything of a process on one thread; a slow query there would hold up
every stream.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
T = TypeVar("T")

_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="database")


def with_fresh_connection(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call ``function`` so that neither a dead connection is used nor a pooled one kept afterwards."""
    close_old_connections()
    try:
        return function(*args, **kwargs)
    finally:
        close_old_connections()


async def in_database_thread(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run ``function`` on a database thread and await its result."""
    call = asyncio.get_running_loop().run_in_executor(
        _threads, lambda: with_fresh_connection(function, *args, **kwargs)
    )
    return await call
