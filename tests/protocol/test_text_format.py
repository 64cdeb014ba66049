"""The format of an answer: what is echoed of it, what the model is told, and what the decoder enforces."""

from typing import Any

from responses_api.protocol import parse_create

SCHEMA = {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"], "additionalProperties": False}


def format_of(wire: dict[str, Any]) -> Any:
    return parse_create({"input": "a", "text": {"format": wire}}).text.format


def test_plain_text_asks_for_nothing() -> None:
    plain = format_of({"type": "text"})
    assert (plain.wire(), plain.instruction, plain.constraint) == ({"type": "text"}, "", None)


def test_a_json_object_is_told_and_enforced() -> None:
    found = format_of({"type": "json_object"})
    assert found.wire() == {"type": "json_object"}
    assert "JSON object" in found.instruction
    assert (found.constraint.kind, found.constraint.text) == ("json_object", "")


def test_a_schema_is_echoed_whole_told_with_its_description_and_enforced() -> None:
    wire = {"type": "json_schema", "name": "n", "description": "What it is.", "schema": SCHEMA, "strict": True}
    found = format_of(wire)
    assert found.wire() == wire
    assert found.instruction.startswith("Answer with JSON")
    assert " It is: What it is.\n" in found.instruction
    assert found.constraint.kind == "json_schema"
    assert '"a"' in found.constraint.text
    assert " It is: " not in format_of({"type": "json_schema", "name": "n", "schema": SCHEMA}).instruction
