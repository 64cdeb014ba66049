"""Converts pydantic's errors to the one ApiError that the client gets.

The unions are tagged and unknown names are looked for first (`base`), so that pydantic's first error is the most
specific one; only a missing field gives way to any other error. The path names fields and indexes, never a branch of a
union.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from responses_api.errors import (
    ApiError,
    InvalidValue,
    MissingParameter,
    UnknownParameter,
    UnsupportedParameter,
)
from responses_api.protocol.json.values import Path, describe, format_path
from responses_api.protocol.validation.base import TAG_PREFIX

_KINDS: Mapping[str, type[ApiError]] = {
    "invalid_value": InvalidValue,
    "missing": MissingParameter,
    "missing_required_parameter": MissingParameter,
    "unknown_parameter": UnknownParameter,
    "unsupported_parameter": UnsupportedParameter,
}

_RIGHT: Mapping[str, str] = {
    "bool_type": "true or false",
    "dict_type": "an object",
    "float_type": "a number",
    "int_type": "an integer",
    "list_type": "an array",
    "model_type": "an object",
    "string_type": "a string",
    "tuple_type": "an array",
}

_BOUNDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than_equal": lambda ctx: f"must be at least {_number(ctx['ge'])}",
    "less_than_equal": lambda ctx: f"must be at most {_number(ctx['le'])}",
    "literal_error": lambda ctx: f"must be {ctx['expected']}",
    "string_too_long": lambda ctx: f"must have at most {ctx['max_length']} characters",
    "string_too_short": lambda ctx: f"must have at least {ctx['min_length']} character",
}


def api_error(error: ValidationError) -> ApiError:
    """The error to report, of all that pydantic found."""
    errors = error.errors(include_url=False)
    first = next((e for e in errors if e["type"] != "missing"), errors[0])
    path = _path(first)
    param = format_path(path)
    subject = f"`{param}`" if param else "The request body"
    return _KINDS.get(first["type"], InvalidValue)(f"{subject} {_reason(first)}", param=param)


def _path(error: ErrorDetails) -> Path:
    path = tuple(step for step in error["loc"] if not (isinstance(step, str) and step.startswith(TAG_PREFIX)))
    field = error.get("ctx", {}).get("field")
    return path if field is None else (*path, field)


def _reason(error: ErrorDetails) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        return "is missing; it is required here."
    if kind in _KINDS:
        reason = str(context["reason"])
        return reason if reason.endswith(("?", ".")) else reason + "."
    if kind in _BOUNDS:
        right = _BOUNDS[kind](context)
    else:
        right = f"must be {_RIGHT[kind]}" if kind in _RIGHT else "is not valid: " + error["msg"]
    return f"{right}, but it is {describe(error['input'])}."


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)
