"""Properties of any schema: whether it has a finite value, and that numbers are enforced exactly."""

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import jsonschema
import referencing
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from inference.constraints.matching import byte_vocabulary
from inference.types import Constraint
from responses_api.errors import InvalidValue
from responses_api.protocol.schemas.check import SchemaLimits, check_schema
from responses_api.protocol.schemas.decoder import enforceable
from responses_api.protocol.schemas.endless import endless_place
from responses_api.protocol.schemas.finite import is_finite

LIMITS = SchemaLimits(max_bytes=64 * 1024, max_nodes=512, max_depth=24)
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NAMES = ("a", "b")


def values(depth: int) -> Iterator[Any]:
    """Small JSON values of at most ``depth`` levels."""
    yield from (None, 1, "a", [], {})
    if depth:
        inner = [None, 1, [], {}] if depth == 1 else list(values(depth - 1))[:12]
        for value in inner:
            yield from ([value], {"a": value}, {"b": value}, {"c": value})
        for first, second in product(inner[:4], repeat=2):
            yield from ([first, second], {"a": first, "b": second}, {"a": first, "c": second})


VALUES = list(values(3))


def nodes(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.lists(st.sampled_from(NAMES), unique=True, max_size=2)
    children = st.lists(inner, min_size=1, max_size=2)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": st.sampled_from(["array", "object", "null", ["array", "object"], ["object", "null"]]),
        "properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=2),
        "required": names,
        "additionalProperties": inner,
        "minProperties": st.integers(0, 2),
        "maxProperties": st.integers(0, 2),
        "items": inner,
        "prefixItems": children,
        "minItems": st.integers(0, 2),
        "maxItems": st.integers(0, 2),
        "allOf": children,
        "anyOf": children,
    }
    return st.fixed_dictionaries({}, optional=keywords).map(lambda node: dict(list(node.items())[:4]))


REFERENCES = st.sampled_from([{"$ref": "#"}, {"$ref": "#/%24defs/d"}, {"$ref": "#/$defs/d"}])
SCHEMAS = st.recursive(st.booleans() | REFERENCES | st.just({"type": "null"}), nodes, max_leaves=5)


def has_a_small_value(schema: Any) -> bool:
    validator = jsonschema.Draft202012Validator(schema, registry=referencing.Registry())
    try:
        return any(validator.is_valid(value) for value in VALUES)
    except RecursionError:  # it refers to itself for the same value
        return False


@QUICK
@given(nodes(SCHEMAS), SCHEMAS)
@example({"type": "object", "additionalProperties": {"$ref": "#"}, "minProperties": 1}, True)
@example({"allOf": [{"properties": {"a": {"$ref": "#"}}}], "required": ["a"], "type": "object"}, True)
def test_a_schema_without_a_finite_value_has_none(schema: dict[str, Any], other: Any) -> None:
    whole = {**schema, "$defs": {"d": other}}
    if not is_finite(whole):
        assert not has_a_small_value(whole)


@QUICK
@given(nodes(st.just(True) | REFERENCES | st.just({"type": "null"})))
def test_a_small_schema_with_a_finite_value_has_a_small_one(schema: dict[str, Any]) -> None:
    whole = {**schema, "$defs": {"d": {"type": "null"}}}
    if endless_place(whole) is None and is_finite(whole):
        assert has_a_small_value(whole)


@QUICK
@given(nodes(SCHEMAS), SCHEMAS)
def test_a_schema_that_is_not_endless_can_be_followed(schema: dict[str, Any], other: Any) -> None:
    """One whose parts all refer to it for the same value cannot."""
    whole = {**schema, "$defs": {"d": other}}
    if endless_place(whole) is None:
        validator = jsonschema.Draft202012Validator(whole, registry=referencing.Registry())
        assert [validator.is_valid(value) for value in VALUES[:20]]
    assert endless_place({"anyOf": [{"allOf": [{"$ref": "#"}]}, {"$ref": "#"}]}) == ()


def allows(schema: dict[str, Any], value: Any) -> bool:
    matcher = byte_vocabulary().matcher(Constraint(kind="json_schema", text=json.dumps(enforceable(schema))))
    text = json.dumps(value).encode()
    return matcher.advance_while_allowed(text) == len(text) and matcher.may_end


INTEGERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-(10**17), 10**17) | st.integers(2**53 - 3, 2**53 + 3)


@QUICK
@given(INTEGERS)
@example(-(2**63))
@example(2**53 - 1)
@example(1234567890123456789)
def test_an_integer_is_enforced_exactly_or_refused(number: int) -> None:
    for schema, right, wrong in (
        ({"const": number}, number, number + 1),
        ({"enum": [number, {"id": number}]}, {"id": number}, number - 1),
        ({"type": "integer", "minimum": number}, number, number - 1),
        ({"type": "integer", "maximum": number}, number, number + 1),
        ({"type": "integer", "exclusiveMinimum": number}, number + 1, number),
        ({"type": "integer", "exclusiveMaximum": number}, number - 1, number),
    ):
        try:
            check_schema(schema, path=("s",), limits=LIMITS, strict=False)
        except InvalidValue:
            assert abs(number) >= 2**53 - 1
            continue
        assert allows(schema, right)
        assert not allows(schema, wrong)
