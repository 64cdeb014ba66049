"""Refusals of schemas at creation, by the innermost place, and of answers at their end."""

import json
import time
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.constraints.matching import Vocabulary, byte_tokenizer
from inference.types import Constraint
from responses_api.errors import InvalidValue
from responses_api.protocol.schemas import check, finite
from responses_api.protocol.schemas.answers import ValidationLimits, answer_error
from responses_api.protocol.schemas.check import SchemaLimits, check_schema, enforceable_part
from responses_api.protocol.schemas.decoder import are_distinct, enforceable, without_patterns
from tests.schemas import schemas

LIMITS = SchemaLimits(max_bytes=64 * 1024, max_nodes=512, max_depth=24)
ANSWER = ValidationLimits(max_nodes=65_536, max_depth=32, seconds=1.0)


def within(inner: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": inner}, "required": ["x"], "additionalProperties": False}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels - 1):
        schema = {"type": "array", "items": schema}
    return schema


def refused_path(schema: dict[str, Any], *, strict: bool = False) -> str:
    """The path inside the schema that is refused; "ok" if nothing is."""
    try:
        check_schema(schema, path=("schema",), limits=LIMITS, strict=strict)
    except InvalidValue as refused:
        param, sentence = str(refused.param), str(refused)
    else:
        return "ok"
    assert sentence.startswith(f"`{param}` ")
    return param.removeprefix("schema").removeprefix(".")


@pytest.mark.parametrize(
    ("inner", "path"),
    [
        ({"type": "notatype"}, "type"),
        ({"type": []}, "type"),
        ({"type": "string", "pattern": "("}, "pattern"),
        ({"type": "string", "pattern": "(?=a)b"}, "pattern"),
        ({"type": "string", "pattern": "(a)\\1"}, "pattern"),
        ({"type": "string", "format": "emial"}, "format"),
        ({"type": "array", "items": [{}]}, "items"),
        ({"type": "array", "items": {"type": "array", "uniqueItems": True}}, "items.uniqueItems"),
        ({"not": {"type": "string"}}, "not"),
        ({"if": {}, "then": {}}, "if"),
        ({"type": "object", "propertyNames": {}}, "propertyNames"),
        ({"type": "array", "contains": {}}, "contains"),
        ({"unevaluatedProperties": False}, "unevaluatedProperties"),
        ({"$ref": "https://example.com/schema.json"}, "$ref"),
        ({"$ref": "other.json#/a"}, "$ref"),
        ({"$ref": "#/$defs/none"}, "$ref"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "oneOf"),
        ({"anyOf": [{"type": "string"}, {"type": "nonsense"}]}, "anyOf[1].type"),
        ({"anyOf": []}, "anyOf"),
        ({"enum": []}, "enum"),
        ({"multipleOf": 0}, "multipleOf"),
        ({"allOf": [{"multipleOf": 4096}, {"multipleOf": 4095}]}, "allOf[1].multipleOf"),
        ({"multipleOf": 1e300}, "multipleOf"),
        ({"minLength": -1}, "minLength"),
        ({"exclusiveMinimum": True}, "exclusiveMinimum"),
        ({"required": ["a", "a"]}, "required"),
        ({"properties": {"y": 3}}, "properties.y"),
        ({"$ref": "#/%24defs/none"}, "$ref"),
        ({"$ref": "#/properties"}, "$ref"),
        ({"$ref": "#anchor"}, "$ref"),
        ({"$id": "https://example.com/a"}, "$id"),
        ({"enum": [1, 1234567890123456789]}, "enum[1]"),
        ({"const": {"id": [-(2**63)]}}, "const"),
        ({"const": 1e30}, "const"),
        ({"type": "integer", "minimum": 2**53}, "minimum"),
        ({"type": "integer", "maximum": 2**63 - 1}, "maximum"),
        ({"type": "number", "exclusiveMinimum": -1e300}, "exclusiveMinimum"),
        ({"multipleOf": 2**60}, "multipleOf"),
        ({"properties": {f"p{n}": {} for n in range(65)}, "minProperties": 1}, "minProperties"),
        (3, ""),
        (None, ""),
    ],
    ids=str,
)
def test_an_error_names_its_place(inner: Any, path: str) -> None:
    place = refused_path(within(inner))
    assert place == f"properties.x.{path}".rstrip(".")


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"$ref": "#"},
        {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"type": "array", "minItems": 1, "items": {"$ref": "#"}},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        {"$defs": {"n": {"$ref": "#/%24defs/n"}}, "$ref": "#/$defs/n"},
        {"type": "object", "additionalProperties": {"$ref": "#"}, "minProperties": 1},
        {
            "type": "object",
            "patternProperties": {"^a": {"$ref": "#"}},
            "additionalProperties": False,
            "minProperties": 1,
        },
        {"allOf": [{"properties": {"a": {"$ref": "#"}}}], "required": ["a"], "type": "object"},
        {
            "anyOf": [{"type": "array"}, {"type": "object", "required": ["a"]}],
            "type": "object",
            "properties": {"a": {"$ref": "#"}},
        },
        {"type": "array", "prefixItems": [{}, {"$ref": "#"}], "minItems": 2},
    ],
    ids=str,
)
def test_a_schema_without_a_finite_value_is_refused(schema: dict[str, Any]) -> None:
    assert refused_path(schema) in ("", "$defs.a", "$defs.n")


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        (within({"type": "string"}), "ok"),
        ({"type": "array"}, "type"),
        ({**within({}), "anyOf": [{}]}, "anyOf"),
        ({**within({}), "required": []}, "required"),
        ({**within({}), "additionalProperties": True}, "additionalProperties"),
        (within({"type": "array", "items": {"type": ["object", "null"]}}), "properties.x.items.additionalProperties"),
        ({**within({"$ref": "#/$defs/a"}), "$defs": {"a": {"properties": {}}}}, "$defs.a.additionalProperties"),
        (within({"type": "string", "maxlength": 3}), "properties.x.maxlength"),
        ({**within({}), "x-guidance": {"whitespace_pattern": "\\s*"}}, "x-guidance"),
        (within({"type": "string", "title": "T", "default": 1, "contentEncoding": "base64"}), "ok"),
    ],
    ids=str,
)
def test_strict_schemas_have_additional_rules(schema: dict[str, Any], path: str) -> None:
    assert refused_path(schema, strict=True) == path
    assert refused_path(schema) == "ok"


def test_limits() -> None:
    assert refused_path(nested(24)) == "ok"
    assert refused_path(nested(25)) == ".".join(["items"] * 24)
    wide = {f"p{number}": {"type": "null"} for number in range(511)}
    assert refused_path({"type": "object", "properties": wide}) == "ok"
    assert refused_path({"type": "object", "properties": {**wide, "more": {}}}) == ""
    assert refused_path({"type": "object", "description": "x" * 65_536}) == ""


@given(schemas(strict=True))
def test_schemas_of_the_sdk_are_accepted(schema: dict[str, Any]) -> None:
    assert refused_path(schema, strict=True) == "ok"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "string", "object", "#", "#/$defs/a", "^a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "items", "properties", "required", "anyOf", "$ref", "$defs", "a", "enum", "minItems"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["type", "properties", "items", "anyOf", "allOf", "$ref", "$defs"]), JSON))
def test_any_json_is_accepted_or_refused(schema: dict[str, Any]) -> None:
    """Nothing is accepted that the draft's own schema doesn't allow."""
    if refused_path(schema) == "ok":
        jsonschema.Draft202012Validator.check_schema(schema)


def test_choices_that_cannot_overlap_are_enforced_as_one_of_them() -> None:
    schema = within({"oneOf": [{"const": "a", "title": "A"}, {"enum": ["b", None]}]})
    assert refused_path(schema) == "ok"
    assert enforceable(schema)["properties"]["x"] == {"anyOf": [{"const": "a"}, {"enum": ["b", None]}]}
    assert refused_path(within({"oneOf": [{"const": "a"}, {"enum": ["a", 1]}]})) == "properties.x.oneOf"


@pytest.mark.parametrize(
    ("text", "schema", "error"),
    [
        ('{"x": 0.07}', within({"multipleOf": 0.01}), ""),
        (f'{{"x": {12 * 10**40}}}', within({"multipleOf": 12}), ""),
        (f'{{"x": {10**40}}}', within({"multipleOf": 12}), "it violates `multipleOf`"),
        ('{"x": 0.075}', within({"multipleOf": 0.01}), "it violates `multipleOf`"),
        ('{"x": "ab"}', within({"type": "string", "pattern": "^(a+)+$"}), ""),
        ('{"x": 1', within({}), "it is not valid JSON: Expecting ',' delimiter: line 1 column 8 (char 7)"),
        ('{"y": 1}', within({}), "it violates `required`"),
        ('{"x": %s}' % ("9" * 5000), within({"type": "integer"}), ""),
        ("[" * 33 + "]" * 33, {}, "it is nested deeper than 32 levels"),
        ("[" * 100_000, {}, "it is nested too deep"),
        (json.dumps([0] * 65_536), {}, "it has more than 65536 values"),
        ("1", {"$ref": "https://example.com/x"}, "a reference can't be resolved"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_answers_are_validated(text: str, schema: dict[str, Any], error: str) -> None:
    assert answer_error(text, schema, limits=ANSWER) == error


def test_validation_has_a_time_limit() -> None:
    """Choices that double at every level take forever to reject."""
    levels = {f"l{n}": {"anyOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(22)}
    slow = {"$ref": "#/$defs/l0", "$defs": {**levels, "l22": {"type": "integer"}}}
    limits = ValidationLimits(max_nodes=10, max_depth=10, seconds=0.05)
    began = time.monotonic()
    assert answer_error('"x"', slow, limits=limits) == "its validation took too long"
    assert time.monotonic() - began < 30


def test_objects_have_no_undeclared_properties() -> None:
    """Objects are closed at any depth, unless they allow additional properties or combine schemas."""
    inner = {"type": "object", "properties": {"a": {"type": "null"}}}
    schema = {"type": "object", "properties": {"list": {"type": "array", "items": inner}, "map": {"type": "object"}}}
    taken = enforceable(schema)
    assert taken["additionalProperties"] is False
    assert taken["properties"]["list"]["items"]["additionalProperties"] is False
    assert taken["properties"]["map"] == {"type": "object"}
    for kept in (
        {**inner, "additionalProperties": True},
        {**inner, "required": ["b"]},
        {**inner, "minProperties": 2},
        {"allOf": [inner, {"type": "object", "properties": {"b": {"type": "null"}}}]},
        {**inner, "patternProperties": {"^x": {"type": "null"}}},
    ):
        assert enforceable(kept) == kept


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ('^[^"]+$', "a\\b", 'a"b'),
        (r"^[^\\]+$", 'a"b', "a\\b"),
        (r"^[^\x22,]+$", "ab", 'a"b'),
        (r"^\[[^\"\]]*\]$", "[ab]", '[a"b]'),
        ("^[^,]+$", 'a"b\n', "a,b"),
        ('^[^]"]+$', "a\\b", 'a"b'),
        ('^[^-"]+$', "a\\b", "a-b"),
    ],
)
def test_a_class_that_leaves_out_a_quote_or_a_backslash_leaves_it_out(pattern: str, good: str, bad: str) -> None:
    """Even in its JSON escapes."""
    schema = enforceable({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}})
    constraint = Constraint(kind="json_schema", text=json.dumps(schema))
    for value, allowed in ((good, True), (bad, False)):
        matcher = Vocabulary(byte_tokenizer()).matcher(constraint)
        text = json.dumps({"a": value}, ensure_ascii=False).encode()
        assert (matcher.advance_while_allowed(text) == len(text)) is allowed


def test_only_enforced_keywords_reach_the_decoder() -> None:
    """No annotations and no options of the decoder; references have one form."""
    options = {"whitespace_pattern": "\\s*", "lenient": True}
    schema = {
        "x-guidance": options,
        "type": "object",
        "properties": {"x-guidance": {"x-guidance": options, "$ref": "#/%24defs/a%20b", "description": "d"}},
        "$defs": {"a b": {"type": "null", "default": None}},
    }
    assert enforceable(schema) == {
        "type": "object",
        "properties": {"x-guidance": {"$ref": "#/$defs/a%20b"}},
        "$defs": {"a b": {"type": "null"}},
        "additionalProperties": False,
    }


def test_an_anchor_is_a_reference_like_others() -> None:
    schema = {"$ref": "#here", "$defs": {"a/b": {"$anchor": "here", "type": "null"}}}
    assert refused_path(schema) == "ok"
    assert enforceable(schema)["$ref"] == "#/$defs/a~1b"
    assert refused_path({"$ref": "#here", "$defs": {"a": {"$anchor": "here", "$ref": "#/$defs/a"}}}) == "$defs.a"


def test_a_reason_cites_the_schema_that_was_sent() -> None:
    with pytest.raises(InvalidValue) as refused:
        check_schema(within({"oneOf": [{"minimum": 0}, {"minimum": 1}]}), path=("s",), limits=LIMITS, strict=False)
    assert "#/$defs" not in str(refused.value)
    assert "##" not in str(refused.value)


def test_a_minimum_that_the_decoder_cannot_hold_is_refused() -> None:
    assert refused_path(within({"type": "string", "minLength": 10_000})) == "ok"
    assert refused_path(within({"type": "string", "minLength": 10_001})) == "properties.x.minLength"


def test_schemas_that_are_booleans_stay() -> None:
    schema = {"type": "array", "items": True, "prefixItems": [False]}
    assert enforceable(schema) == schema


def test_a_schema_with_all_of_is_not_closed() -> None:
    """Closing one part would refuse the properties of another."""
    schema = {"allOf": [{"type": "object", "properties": {"a": {"type": "null"}}}, {"type": "object"}]}
    assert enforceable(schema) == schema


def test_a_schema_without_its_patterns_allows_more() -> None:
    """Which properties are additional depends on the patterns, so `additionalProperties` is dropped too."""
    schema = {"type": "object", "patternProperties": {"^a": {"pattern": "b"}}, "additionalProperties": False}
    assert without_patterns(schema) == {"type": "object"}
    assert without_patterns({"type": "string", "pattern": "b"}) == {"type": "string"}


def test_choices_with_composite_constants_may_overlap() -> None:
    assert are_distinct([{"const": 1}, {"enum": ["1", True]}])
    assert not are_distinct([{"const": [1]}, {"const": 2}])
    assert not are_distinct([{"const": 1}, {"type": "string"}])


def test_a_number_within_a_constant_is_exact_too() -> None:
    assert refused_path(within({"const": {"a": [1, 2]}})) == "ok"
    assert refused_path(within({"const": {"a": [1, 1 << 60]}})) == "properties.x.const"


def test_an_invalid_reference_is_refused() -> None:
    for reference in ("https://example.com/schema", "other.json#/a", "#nowhere"):
        assert refused_path({"$ref": reference}) == "$ref"
    assert enforceable({"$ref": "other.json#/a"})["$ref"] == "other.json#/a"


def test_multiple_of_applies_to_numbers_only() -> None:
    assert answer_error('"x"', {"multipleOf": 2}, limits=ANSWER) == ""
    assert answer_error("3", {"multipleOf": 2}, limits=ANSWER) == "it violates `multipleOf`"


def test_a_minimum_above_the_maximum_has_no_value() -> None:
    assert not finite.is_finite({"type": "array", "minItems": 2, "maxItems": 1})
    assert finite.is_finite({"type": "array", "minItems": 1, "maxItems": 1})
    assert not finite.is_finite({"type": "object", "required": ["a", "b"], "maxProperties": 1})
    assert finite.is_finite({"type": "object", "required": ["a"], "maxProperties": 1})


@pytest.mark.parametrize(
    ("module", "bound", "value"),
    [(check, "_DROPPING_SECONDS", -1.0), (check, "_MOST_DROPPED", 0), (check, "_FEW_TRIALS", 1)],
)
def test_a_keyword_that_takes_too_long_to_find_is_not_enforced(
    module: Any, bound: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the bound only the offending keyword is dropped, and the rest enforced."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "null"}, "x": {"oneOf": [{"minimum": 0}, {"minimum": 1}]}},
        "title": bound,
    }
    assert enforceable_part({**schema, "description": "found"}) is not None
    monkeypatch.setattr(module, bound, value)
    assert enforceable_part(schema) is None


def test_a_schema_that_takes_too_long_to_check_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    assert not finite.is_finite(endless)
    monkeypatch.setattr(finite, "_MOST_VISITS", -1)
    assert finite.is_finite(endless)
