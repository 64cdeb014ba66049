"""The JSON value of a request body. Large bodies are read in steps, on separate threads."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.conf import settings

from responses_api.errors import ApiError
from responses_api.protocol.json.reader import ReadingLimits, read_json

INLINE_BYTES = 1 << 16
"""A body of at most this many bytes takes a few milliseconds and is read on the event loop."""

_threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="bodies")


class CallerLeft(Exception):
    """The caller has left, and nobody waits for the value."""


def parse_body(body: bytes, between: Callable[[], None] = lambda: None) -> Any:
    """The JSON value of a body, or the :class:`ApiError` for one that can't be read."""
    try:
        return read_json(body, limits=ReadingLimits(max_values=settings.RESPONSES_BODY_MAX_VALUES), between=between)
    except ApiError as error:
        return error


async def parsed_body(body: bytes) -> Any:
    """Like :func:`parse_body`, without blocking the event loop. Reading stops when the caller is cancelled."""
    left = threading.Event()

    def between() -> None:
        if left.is_set():
            raise CallerLeft

    try:
        return await asyncio.get_running_loop().run_in_executor(_threads, parse_body, body, between)
    finally:
        left.set()
