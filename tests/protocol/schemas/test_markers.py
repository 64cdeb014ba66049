"""Validators with the JSON Schema of what they allow, together on a type."""

from typing import Annotated, Any, Never

import pytest
from pydantic import TypeAdapter, ValidationError

from responses_api.protocol.validation.base import refusal
from responses_api.protocol.validation.markers import Allows, AtMost, Refused


def refuse(value: object) -> Never:
    raise refusal("unsupported_parameter", "is not supported")


def test_keywords_are_added_to_the_types_own() -> None:
    schema = TypeAdapter(Annotated[int, Allows(minimum=1, maximum=3)]).json_schema()
    assert schema == {"type": "integer", "minimum": 1, "maximum": 3}


@pytest.mark.parametrize(
    ("bounded", "keyword", "value"),
    [
        (Annotated[list[int], AtMost(2)], "maxItems", ["a", "b", "c"]),
        (Annotated[dict[str, int], AtMost(2)], "maxProperties", {"a": "a", "b": "b", "c": "c"}),
    ],
)
def test_too_many_entries_are_one_error(bounded: Any, keyword: str, value: object) -> None:
    """Counted before any is validated."""
    adapter = TypeAdapter(bounded)
    assert adapter.json_schema()[keyword] == 2
    with pytest.raises(ValidationError) as caught:
        adapter.validate_python(value)
    assert [error["msg"] for error in caught.value.errors()] == ["must have at most 2 entries, but it has 3"]


def test_a_type_that_refuses_everything_allows_nothing() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(Annotated[Any, Refused(refuse)])
    assert adapter.json_schema() == {"not": {}}
    with pytest.raises(ValidationError) as caught:
        adapter.validate_python("x")
    assert caught.value.errors()[0]["type"] == "unsupported_parameter"
