"""Refusals that a worker hands to a reader in another process."""

from typing import Any

from responses_api.errors import ApiError, ServerError


def _classes(base: type[ApiError]) -> dict[str, type[ApiError]]:
    found = {base.__name__: base}
    for child in base.__subclasses__():
        found |= _classes(child)
    return found


def error_to_wire(error: ApiError) -> dict[str, Any]:
    """The error as a message can carry it."""
    return {
        "class": type(error).__name__,
        "message": error.message,
        "param": error.param,
        "code": error.code,
        "headers": error.headers,
    }


def error_from_wire(value: dict[str, Any]) -> ApiError:
    """The error again, with its status and headers."""
    kind = _classes(ApiError).get(value["class"], ServerError)
    return kind(value["message"], param=value["param"], code=value["code"], headers=value["headers"])
