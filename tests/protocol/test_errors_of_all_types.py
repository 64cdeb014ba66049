"""Every wire type: an invalid value gives one short error with a sentence of ours, however long the value."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

import responses_api.chat
import responses_api.protocol.requests.compact
import responses_api.protocol.requests.conversations
import responses_api.protocol.requests.create
import responses_api.protocol.requests.queries  # noqa: F401  # so that all subclasses are known
from responses_api.errors import ApiError
from responses_api.protocol.items.hosted import HOSTED_TYPES
from responses_api.protocol.items.input import OWN_TYPES
from responses_api.protocol.tools.declared import HostedTool
from responses_api.protocol.validation.base import WireModel
from responses_api.protocol.validation.errors import api_error

LONG = 300
MOST_ERRORS = 60  # one for each field of a model
MOST_CHARACTERS = 700

SEQUENCES = ("list", "tuple", "set", "frozenset")


def wire_models(base: type[BaseModel] = WireModel) -> Iterator[type[BaseModel]]:
    """All wire models."""
    for model in base.__subclasses__():
        if model.__module__.startswith("responses_api.") and not model.__name__.startswith("_"):
            yield model
        yield from wire_models(model)


MODELS: list[type[BaseModel]] = sorted(
    {*wire_models(), HostedTool}, key=lambda model: (model.__module__, model.__name__)
)
FIELDS = [
    pytest.param(model, field.alias or name, id=f"{model.__name__}.{name}")
    for model in MODELS
    for name, field in model.model_fields.items()
]


def sequences(schema: Any) -> Iterator[dict[str, Any]]:
    """The arrays within a core schema."""
    if isinstance(schema, dict):
        if schema.get("type") in SEQUENCES and "items_schema" in schema:
            yield schema
        schema = tuple(schema.values())
    if isinstance(schema, list | tuple):
        for value in schema:
            yield from sequences(value)


def wrong_values() -> list[Any]:
    """Values that are invalid at one place, or nearly everywhere."""
    kinds = ("function", "custom", "namespace", "allowed_tools", "input_text", "output_text", "compaction", "message")
    single = [
        1, -1, 1.5, 10**12, True, "", "x", "x" * LONG, [], {}, [[]], {"a": 1}, {"x" * LONG: 1},
        *({"type": kind} for kind in (*kinds, *OWN_TYPES, *HOSTED_TYPES)),
        {"type": 1}, {"type": "x" * LONG}, {"role": "user"}, {"role": 1, "content": 1}, {"id": "x" * LONG},
    ]  # fmt: skip
    return [
        *single,
        *([value] * LONG for value in single),
        *([value, value] for value in single),
        *({f"n{number}": value for number in range(LONG)} for value in single),
    ]


WRONG = wrong_values()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_array_ends_at_its_first_error(model: type[BaseModel]) -> None:
    """Otherwise pydantic builds an error for each entry of an array, a thousand bytes for three."""
    for schema in sequences(model.__pydantic_core_schema__):
        assert schema.get("fail_fast"), schema


@pytest.mark.parametrize(("model", "name"), FIELDS)
def test_a_wrong_value_is_one_sentence(model: type[BaseModel], name: str) -> None:
    for value in WRONG:
        known = error_of(model, {name: value})
        if known is None:
            continue
        assert "is not valid" not in known.message
        assert known.message.endswith((".", "?")), known.message
        assert len(known.message) <= MOST_CHARACTERS, known.message
        assert len(known.param or "") <= MOST_CHARACTERS


def error_of(model: type[BaseModel], body: dict[str, Any]) -> ApiError | None:
    """The error of a body, made from a bounded number of pydantic's."""
    try:
        model.model_validate(body)
    except ValidationError as error:
        count = error.error_count()
        known = api_error(error)
    else:
        return None
    assert count <= MOST_ERRORS
    return known
