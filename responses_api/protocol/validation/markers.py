"""Markers for `Annotated` that add a validator's JSON Schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Never

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from responses_api.protocol.validation.base import refusal

NOTHING: Final[dict[str, Any]] = {"not": {}}
"""The schema that no value satisfies."""


class Allows:
    """Keywords for a type's JSON Schema that describe its validators, such as `Allows(minimum=0, maximum=20)`."""

    def __init__(self, **keywords: Any) -> None:
        self._keywords = keywords

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), **self._keywords}


class AtMost:
    """A maximum number of entries of an array or an object, checked before any is validated: too many are one error."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        allowed = handler(schema)
        return {**allowed, "maxItems" if allowed["type"] == "array" else "maxProperties": self._limit}

    def _check(self, value: object) -> object:
        if isinstance(value, dict | list) and len(value) > self._limit:
            entries = "entry" if self._limit == 1 else "entries"
            reason = f"must have at most {self._limit} {entries}, but it has {len(value)}"
            raise refusal("invalid_value", reason)
        return value


class Refused:
    """Refuses every value: `refuse` raises the error. Its JSON Schema allows nothing."""

    def __init__(self, refuse: Callable[[object], Never]) -> None:
        self._refuse = refuse

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._refuse)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return dict(NOTHING)
