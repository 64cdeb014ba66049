"""Database work for the event loop: a few threads that keep their connections.

Django's own thread-sensitive executor runs everything of a process on one thread; a slow query there would hold up
every stream. Requests are admitted on threads of their own, of which nobody has more than half, since checking what a
request brings may take seconds; readers look at the logs of jobs on others again. So neither can keep the short
statements of everybody else waiting.
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


async def in_admission_thread(owner: str, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """The same for admitting a request of ``owner``, who waits while half of these threads work for it."""
    async with _turns.turn(owner):
        return await _run(_admission_threads, function, *args, **kwargs)


class Turns:
    """Places that each owner has a number of. Used on one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[None]:
        """Hold a place; those of one owner get theirs in the order in which they ask."""
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
        """Give a place to the next who waits and has not left."""
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
    """The same on a thread for those who read a stream: nothing but short queries may run there."""
    return await _run(_reading_threads, function, *args, **kwargs)


async def _run(threads: ThreadPoolExecutor, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    call = asyncio.get_running_loop().run_in_executor(threads, lambda: with_fresh_connection(function, *args, **kwargs))
    return await call
