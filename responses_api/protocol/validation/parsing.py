"""Parses JSON values into checked requests, and restores admitted requests from their rows.

Parsing raises nothing but an ApiError (400) that names one error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from pydantic import ValidationError

from responses_api.errors import InvalidRequest, ServerError
from responses_api.protocol.json.reader import read_stored
from responses_api.protocol.json.values import check_wire_value, describe
from responses_api.protocol.validation.base import ADMITTED, WireModel
from responses_api.protocol.validation.errors import api_error

Request = TypeVar("Request", bound=WireModel)
Pairs = Iterable[tuple[str, str]]


def parse_body(model: type[Request], payload: object) -> Request:
    """The checked body of a request."""
    check_wire_value(payload)
    if not isinstance(payload, dict):
        raise InvalidRequest(f"The request body must be a JSON object, but it is {describe(payload)}.")
    return _validated(model, payload)


def restore_body(model: type[Request], text: str) -> Request:
    """An admitted request, from its body as stored JSON text.

    Types are restored, and rules on whole objects are not applied again. Raises a :class:`ServerError` for a body that
    another version admitted and this version can't read.
    """
    try:
        return model.model_validate(read_stored(text), context=ADMITTED)
    except ValidationError:  # its message quotes the body, which must not reach a log
        raise ServerError(
            "Another version of this server admitted the request, and this version can't read it. Send it again."
        ) from None


def parse_arguments(model: type[Request], pairs: Pairs) -> Request:
    """The checked arguments of a query string, in pairs as `urllib.parse.parse_qsl` gives them.

    An array comes as `include=a&include=b` or, from OpenAI's SDKs, as `include[]=a`. Of other repeated arguments the
    last counts.
    """
    arguments: dict[str, object] = {}
    for name, value in pairs:
        if name in ("include", "include[]"):
            included = arguments.setdefault("include", [])
            assert isinstance(included, list)
            included.append(value)
        else:
            arguments[name] = value
    check_wire_value(arguments)
    return _validated(model, arguments)


def _validated(model: type[Request], value: object) -> Request:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise api_error(error) from None
