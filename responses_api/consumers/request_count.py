"""Counts HTTP responses, at the one place that all of them pass."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from django.db import Error as DatabaseError

from responses_api.api.request_scope import Scope
from responses_api.api.urls import endpoints
from responses_api.counting import REQUESTS, count
from responses_api.database.threads import in_database_thread
from responses_api.services.processes.publish_counts import publish_counts

Send = Callable[[dict[str, Any]], Awaitable[None]]

PUBLISH_SECONDS = 2.0
CLASSES = {
    **{root: root for root in {route.partition("/")[0] for route, _ in endpoints}},
    "healthz": "health",
    "readyz": "health",
    "admin": "admin",
    "static": "static",
    "": "pages",
}

log = structlog.get_logger(__name__)
_loop: asyncio.AbstractEventLoop | None = None
"""The event loop on which a publication is scheduled, if any."""


def route_class(scope: Scope) -> str:
    """The class that a request is counted as, one of a few names for any path. Creating a response has its own."""
    path = scope["path"].removeprefix("/").removeprefix("v1/").rstrip("/")
    if path == "responses" and scope["method"] == "POST":
        return "create"
    return CLASSES.get(path.partition("/")[0], "other")


def counted(scope: Scope, send: Send) -> Send:
    """``send``, which also counts the response."""

    async def wrapped(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            count(REQUESTS, route=route_class(scope), status=f"{message['status'] // 100}xx")
            publish_soon()
        await send(message)

    return wrapped


def publish_soon() -> None:
    """Schedule the publication of the counts: a web process without readers has no heartbeat that publishes them."""
    global _loop
    loop = asyncio.get_running_loop()
    if _loop is not loop:
        _loop = loop
        loop.call_later(PUBLISH_SECONDS, start_publishing, loop)


def start_publishing(loop: asyncio.AbstractEventLoop) -> None:
    """Publish the counts so far; later ones are published the next time."""
    global _loop
    _loop = None
    task = loop.create_task(publish())
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


_tasks: set["asyncio.Task[None]"] = set()


async def publish() -> None:
    """Publish the counts if the database can be reached; otherwise the next call does."""
    try:
        await in_database_thread(publish_counts)
    except DatabaseError as error:
        log.warning("counts.not_published", error=str(error))
