"""Any choice among the tokens that a constraint allows gives a valid text: random walks without a model."""

import json
import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.constraints.matching import END, Vocabulary, byte_tokenizer, constraint_error
from inference.engine.model_loading import load_vocabulary
from inference.scripted.engine import _following
from inference.scripted.script import Fail, Script
from inference.scripted.tokenizer import decode, encode
from inference.types import Constraint
from tests.schemas import schemas, validate

NUMBERED = {"type": "object", "properties": {"a": {"type": "integer"}}}
NAMED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
VOCABULARY = Vocabulary(byte_tokenizer())


def of(schema: object) -> Constraint:
    return Constraint(kind="json_schema", text=json.dumps(schema))


def walk(constraint: Constraint, chance: random.Random, *, closing: float, limit: int = 2000) -> str | None:
    """A text of randomly chosen bytes; None if it met no end. `closing` is how much it likes to close what is open."""
    matcher, text = VOCABULARY.matcher(constraint), bytearray()
    for _ in range(limit):
        if matcher.must_end:
            break
        mask = matcher.mask()
        allowed = [byte for byte in range(END + 1) if mask[byte]]
        closers = [byte for byte in allowed if byte == END or byte in b'"}]']
        chosen = chance.choice(closers if closers and chance.random() < closing else allowed)
        if chosen == END:
            break
        matcher.advance(chosen)
        text.append(chosen)
        assert matcher.error == ""
    else:
        return None
    assert matcher.may_end
    return text.decode()


@settings(max_examples=30)
@given(schema=schemas(), seed=st.integers(0, 2**32), closing=st.sampled_from([0.2, 0.5, 0.9]))
def test_any_walk_through_a_schema_is_valid(schema: Any, seed: int, closing: float) -> None:
    assert constraint_error(of(schema)) == ""
    text = walk(of(schema), random.Random(seed), closing=closing)
    if text is not None:
        validate(text, schema)


@settings(max_examples=30)
@given(schema=schemas(), say=st.text(max_size=30))
def test_a_script_following_to_a_schema_is_valid_and_ends(schema: Any, say: str) -> None:
    """Whatever the script says, by the same steps each time."""
    script = Script(parts=[encode(say)])
    tokens = list(_following(script.steps(), of(schema)))
    assert tokens == list(_following(script.steps(), of(schema)))
    assert not any(isinstance(token, Fail) for token in tokens)
    validate(decode(token for token in tokens if isinstance(token, int)), schema)
    assert len(tokens) < 4000


@pytest.mark.parametrize(
    ("schema", "said", "written"),
    [
        (NUMBERED, '{"a": 1}', '{"a": 1}'),
        (NUMBERED, '{"a":1}', '{"a": 1}'),
        (NAMED, "Hi there", '{"a": "Hi there"}'),
        ({"type": "string", "maxLength": 3}, "Hi there", '"Hi "'),
        ({"type": "array", "items": {"type": "integer"}}, "[1, 2", "[1, 2]"),
        ({"enum": ["red", "green"]}, "green", '"green"'),
    ],
)  # fmt: skip
def test_a_script_is_followed_as_far_as_it_fits(schema: Any, said: str, written: str) -> None:
    tokens = [token for token in _following(Script(parts=[encode(said)]).steps(), of(schema)) if isinstance(token, int)]
    assert decode(tokens) == written


@pytest.mark.parametrize("kind", ["json_object", "lark", "regex"])
@pytest.mark.parametrize("seed", range(10))
def test_the_other_kinds(kind: Any, seed: int) -> None:
    source = {"json_object": "", "lark": 'start: "a" (/[bc]/)* "d"', "regex": "a[bc]*d"}[kind]
    text = walk(Constraint(kind=kind, text=source), random.Random(seed), closing=0.5)
    assert text is not None
    if kind == "json_object":
        assert isinstance(json.loads(text), dict)
    else:
        assert re.fullmatch("a[bc]*d", text)


@pytest.mark.parametrize(
    "constraint",
    [
        of({"type": "nonsense"}),
        of({"$ref": "https://example.com/schema.json"}),
        of({"type": "string", "pattern": "("}),
        of({"type": "string", "pattern": "(?=a)b"}),
        of({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        of([]),
        of({"x-guidance": {"lenient": True}, "not": {}}),
        Constraint(kind="json_schema", text="{"),
        Constraint(kind="regex", text="("),
        Constraint(kind="lark", text="start: other"),
    ],
    ids=lambda constraint: constraint.text,
)
def test_unenforceable_constraints_are_recognised_without_a_model(constraint: Constraint) -> None:
    reason = constraint_error(constraint)
    assert reason
    assert "\n" not in reason


def test_a_schema_cannot_loosen_the_bound_on_white_space() -> None:
    schema = {"x-guidance": {"whitespace_flexible": True, "item_separator": " *, *"}, "type": "array", "minItems": 2}
    matcher = VOCABULARY.matcher(of(schema))
    assert matcher.advance_while_allowed(b"[ ") == 1
    assert matcher.advance_while_allowed(b"1, 2]") == 5
    assert matcher.must_end


def test_a_compiled_grammar_serves_independent_sequences() -> None:
    constraint = of({"enum": ["aa", "ab"]})
    first, second = VOCABULARY.matcher(constraint), VOCABULARY.matcher(constraint)
    first.advance_while_allowed(b'"aa"')
    assert first.must_end
    assert not second.may_end
    assert second.advance_while_allowed(b'"ab"') == 4


def test_a_directory_without_a_usable_tokenizer_has_no_vocabulary(tmp_path: Any) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    assert load_vocabulary(tmp_path, stop_tokens=(2,)) is None
