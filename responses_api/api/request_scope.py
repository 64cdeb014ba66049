"""What the router leaves in the ASGI scope for whoever answers the request."""

from collections.abc import Iterable, MutableMapping
from typing import Any, cast
from urllib.parse import parse_qsl

from responses_api.errors import ApiError

REQUEST_ID = "responses_api.request_id"
CALLER = "responses_api.caller"
HELD = "responses_api.held"
PAYLOAD = "responses_api.payload"

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


def forget_body(scope: Scope) -> None:
    """Let go of the body of a request that has been admitted: the answer may take long, and needs it no more."""
    scope.pop(PAYLOAD, None)
    held = scope.pop(HELD, None)
    if held is not None:
        held.release()


def payload(scope: Scope) -> Any:
    """The parsed body. Raises what made it unreadable."""
    value = scope[PAYLOAD]
    if isinstance(value, ApiError):
        raise value
    return value
