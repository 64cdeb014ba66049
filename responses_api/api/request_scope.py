"""Entries that the router adds to the ASGI scope for views and consumers."""

from collections.abc import Iterable, MutableMapping
from typing import Any, cast
from urllib.parse import parse_qsl

REQUEST_ID = "responses_api.request_id"
CALLER = "responses_api.caller"
BODY = "responses_api.body"
"""A :class:`RequestBody`, where the route reads one."""

Scope = MutableMapping[str, Any]


def header(scope: Scope, name: bytes) -> str:
    """A request header's value, empty when it isn't sent. The name in lower case."""
    for key, value in cast("Iterable[tuple[bytes, bytes]]", scope["headers"]):
        if key == name:
            return value.decode("latin-1")
    return ""


def query_pairs(scope: Scope) -> list[tuple[str, str]]:
    """The query string's arguments in order."""
    return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
