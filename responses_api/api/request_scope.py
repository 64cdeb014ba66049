"""What the router leaves in the ASGI scope for whoever answers the request."""

from collections.abc import Iterable, MutableMapping
from typing import Any, cast
from urllib.parse import parse_qsl

import orjson

from responses_api.errors import ApiError, InvalidJson

REQUEST_ID = "responses_api.request_id"
CALLER = "responses_api.caller"
BODY = "responses_api.body"
HELD = "responses_api.held"
PAYLOAD = "responses_api.payload"

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

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


def parse_body(body: bytes) -> Any:
    """The JSON value of a body; or an :class:`InvalidJson`, which whoever answers raises after authentication."""
    try:
        return orjson.loads(body.removeprefix(BYTE_ORDER_MARK))
    except orjson.JSONDecodeError as error:
        return InvalidJson(f"The body is not valid JSON: {error}. Send a JSON object, encoded as UTF-8.")


def forget_body(scope: Scope) -> None:
    """Let go of the body of a request that has been admitted: the answer may take long, and needs it no more."""
    scope.pop(PAYLOAD, None)
    scope.pop(BODY, None)
    held = scope.pop(HELD, None)
    if held is not None:
        held.release()


def payload(scope: Scope) -> Any:
    """The parsed body. Raises what made it unreadable."""
    value = scope[PAYLOAD]
    if isinstance(value, ApiError):
        raise value
    return value
