"""Runs database work for the event loop on a few threads with persistent connections.

Django's own thread-sensitive executor runs everything of a process on one thread, where a slow query would delay every
stream. Requests are admitted on separate threads, at most half of them for one owner, since checking a request may take
seconds; the logs of jobs are read on a third group. Neither delays the short statements of everything else.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, ParamSpec, TypeVar

from django.db import close_old_connections, connections

P = ParamSpec("P")
T = TypeVar("T")

ADMISSION_THREADS = 8

_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="database")
_admission_threads = ThreadPoolExecutor(max_workers=ADMISSION_THREADS, thread_name_prefix="admission")
_reading_threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="reading")


def use_own_connection() -> None:
    """Give the calling thread a persistent database connection outside of the pool.

    A thread that renews leases must not wait until another one returns a connection.
    """
    connection = connections.create_connection("default")
    options = {name: value for name, value in connection.settings_dict["OPTIONS"].items() if name != "pool"}
    connection.settings_dict = {**connection.settings_dict, "OPTIONS": options, "CONN_MAX_AGE": None}
    connections["default"] = connection


def with_fresh_connection(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call ``function`` without a dead connection from before, and return a pooled connection afterwards."""
    close_old_connections()
    try:
        return function(*args, **kwargs)
    finally:
        close_old_connections()


async def in_database_thread(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run ``function`` on a database thread and await its result."""
    return await _run(_threads, function, *args, **kwargs)


async def in_admission_thread(owner: str, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run ``function`` on an admission thread; it waits while half of these threads work for ``owner``."""
    async with _turns.turn(owner):
        return await _run(_admission_threads, function, *args, **kwargs)


class Turns:
    """A fixed number of places for each owner. Used on one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[None]:
        """Take a place for the duration of the block. An owner's calls get places in the order of the calls."""
        if self._held[owner] < self._most:
            self._held[owner] += 1
        else:
            await self._wait(owner)
        try:
            yield
        finally:
            self._pass_on(owner)

    async def _wait(self, owner: str) -> None:
        place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._pass_on(owner)
            raise

    def _pass_on(self, owner: str) -> None:
        """Give a place to the owner's next call that still waits, or free it."""
        waiting = self._waiting.get(owner, deque())
        while waiting:
            place = waiting.popleft()
            if not place.done():
                place.set_result(None)
                break
        else:
            self._held[owner] -= 1
        if not waiting:
            self._waiting.pop(owner, None)
        if not self._held[owner]:
            del self._held[owner]


_turns = Turns(ADMISSION_THREADS // 2)


async def in_reading_thread(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run ``function`` on a thread for readers of streams; only short queries may run there."""
    return await _run(_reading_threads, function, *args, **kwargs)


async def _run(threads: ThreadPoolExecutor, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    call = asyncio.get_running_loop().run_in_executor(threads, lambda: with_fresh_connection(function, *args, **kwargs))
    return await call
