"""Markers for `Annotated` that put a validator's JSON Schema beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Never

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

NOTHING: Final[dict[str, Any]] = {"not": {}}
"""The schema that no value satisfies."""


class Allows:
    """Keywords that the JSON Schema of a type gets for its validators, such as `Allows(minimum=0, maximum=20)`."""

    def __init__(self, **keywords: Any) -> None:
        self._keywords = keywords

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), **self._keywords}


class Refused:
    """Refuses every value: `refuse` raises the error. Its JSON Schema allows nothing."""

    def __init__(self, refuse: Callable[[object], Never]) -> None:
        self._refuse = refuse

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._refuse)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return dict(NOTHING)
