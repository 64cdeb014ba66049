"""A validator for Open Responses' published schema (2026-04-24, without descriptions)."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped, unused-ignore]
from referencing import Registry
from referencing.jsonschema import DRAFT202012

SCHEMA = Path(__file__).parents[1] / "reference" / "open-responses-2026-04-24.json"


@cache
def _registry() -> Registry[Any]:
    document = DRAFT202012.create_resource(json.loads(SCHEMA.read_text()))
    return Registry().with_resource("urn:open-responses", document)


def open_responses_errors(name: str, value: object) -> list[str]:
    """Errors of a value under the schema `name`."""
    schema = {"$ref": f"urn:open-responses#/components/schemas/{name}"}
    validator = Draft202012Validator(schema, registry=_registry())
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]
