"""Constraints hold for their own sequences, greedy and sampled, while others join, leave and write freely.

The model is a small one with random weights, whose tokens are bytes: without a constraint it writes noise.
"""

import json
import re
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inference.constraints.matching import TOO_COMPLEX, Matcher
from inference.types import Constraint, Sampling
from tests.inference.engine.test_batch import PROMPTS, SIZE, STOP, Bench, by_hand, model
from tests.inference.vocabularies import byte_vocabulary
from tests.schemas import schemas, validate

__all__ = ["model"]

pytestmark = pytest.mark.real_model

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "kind": {"enum": ["a", "bc", None]},
        "tags": {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3},
    },
    "required": ["name", "age", "kind", "tags"],
    "additionalProperties": False,
}
SCHEMA = Constraint(kind="json_schema", text=json.dumps(PERSON))
REGEX = Constraint(kind="regex", text="[a-f]{3}-[0-9]{2}")
LARK = Constraint(kind="lark", text='start: "<" word ("," word)* ">"\nword: /[xyz]{1,3}/')
GREEDY = Sampling(temperature=0.0)
# As with a trained model, closing is not rarer than going on: noise would write for ever what has no bound.
CLOSING = ((ord('"'), 6.0), (ord("}"), 8.0), (ord("]"), 8.0), (ord(">"), 4.0))
SAMPLED = Sampling(temperature=1.2, top_p=0.95, logit_bias=CLOSING)


def is_person(text: str) -> bool:
    value = json.loads(text)
    assert list(value) == ["name", "age", "kind", "tags"]
    return 0 <= value["age"] <= 130 and 1 <= len(value["name"]) <= 8 and value["kind"] in ("a", "bc", None)


@pytest.fixture
def bench(model: Any) -> Any:
    bench = Bench(model, vocabulary=byte_vocabulary(SIZE, stop=STOP), cache_bytes=1 << 24)
    yield bench
    bench.batch.close()


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED, Sampling(temperature=1.0, seed=5, min_p=0.001)], ids=str)
def test_every_answer_matches_its_constraint_beside_free_neighbours(
    model: Any, bench: Bench, sampling: Sampling
) -> None:
    kinds: list[Constraint | None] = [SCHEMA, None, REGEX, LARK]
    for number in range(16):
        constraint = kinds[number % 4]
        chosen = GREEDY if constraint is None else sampling
        bench.add(f"{number}", PROMPTS[number % 4], chosen, max_tokens=100 if constraint else 20, constraint=constraint)
        bench.step(number % 3)
        if number == 9:
            bench._note(bench.batch.cancel("8"))
    bench.finish()
    for number in range(16):
        text, last, constraint = bench.text(f"{number}"), bench.last(f"{number}"), kinds[number % 4]
        if constraint is None:
            assert bench.tokens(f"{number}") == by_hand(model, PROMPTS[number % 4], GREEDY, 20)
        elif number == 8:
            assert last.finish == "cancelled"
        elif constraint is SCHEMA:
            assert (last.finish, is_person(text)) == ("stop", True), text
        elif constraint is REGEX:
            assert (last.finish, bool(re.fullmatch(REGEX.text, text))) == ("stop", True), text
        elif last.finish == "stop":
            assert re.fullmatch("<[xyz]{1,3}(,[xyz]{1,3})*>", text), text
        else:
            assert (last.finish, len(bench.tokens(f"{number}"))) == ("length", 100)


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=st.lists(schemas(), min_size=8, max_size=8), sampling=st.sampled_from([GREEDY, SAMPLED]))
def test_eight_random_schemas_at_once_beside_free_text(model: Any, asked: list[Any], sampling: Sampling) -> None:
    """Every answer that ends by itself is valid, and none stalls; the free ones write what they write alone."""
    bench = Bench(model, vocabulary=byte_vocabulary(SIZE, stop=STOP))
    for number, schema in enumerate(asked):
        constraint = Constraint(kind="json_schema", text=json.dumps(schema))
        bench.add(f"free {number}", PROMPTS[number % 4], GREEDY, max_tokens=20)
        bench.add(f"{number}", PROMPTS[number % 4], sampling, max_tokens=150, constraint=constraint)
        bench.step(2)
    bench.finish()
    for number, schema in enumerate(asked):
        assert bench.tokens(f"free {number}") == by_hand(model, PROMPTS[number % 4], GREEDY, 20)
        assert bench.last(f"{number}").finish in ("stop", "length")
        if bench.last(f"{number}").finish == "stop":
            validate(bench.text(f"{number}"), schema)
    bench.batch.close()


def test_a_complete_answer_ends_and_a_cut_one_is_marked(bench: Bench) -> None:
    """The end needs no token of its own, so an answer that just fits its limit is whole."""
    never_ends = Sampling(temperature=0.0, logit_bias=((STOP, -100.0),))
    bench.add("fits", PROMPTS[0], never_ends, max_tokens=6, constraint=REGEX)
    bench.add("is cut", PROMPTS[0], never_ends, max_tokens=5, constraint=REGEX)
    bench.add("may go on", PROMPTS[0], never_ends, max_tokens=9, constraint=Constraint(kind="regex", text="ab*"))
    wants_to_end = Sampling(temperature=0.0, logit_bias=((STOP, 100.0),))
    bench.add("must go on", PROMPTS[1], wants_to_end, constraint=REGEX)
    bench.add("may end", PROMPTS[1], wants_to_end, constraint=Constraint(kind="regex", text="ab*"))
    bench.finish()
    assert (bench.last("fits").finish, bench.last("is cut").finish) == ("stop", "length")
    assert bench.text("fits")[:5] == bench.text("is cut")
    assert (bench.text("may go on"), bench.last("may go on").finish) == ("abbbbbbbb", "length")
    assert (len(bench.text("must go on")), bench.last("must go on").finish) == (6, "stop")
    assert (bench.text("may end"), bench.last("may end").finish) == ("a", "stop")


def test_the_state_of_a_constrained_sequence_is_kept_for_the_next_turn(model: Any, bench: Bench) -> None:
    bench.add("first", PROMPTS[0], GREEDY, constraint=REGEX, cache_scope="one")
    bench.finish()
    longer = (*PROMPTS[0], *bench.tokens("first"), 70, 71)
    bench.add("second", longer, GREEDY, cache_scope="one")
    bench.finish()
    assert bench.chunks["second"][0].cached_tokens >= len(longer) - 3
    assert bench.tokens("second") == by_hand(model, longer, GREEDY, 24)


def test_a_constraint_that_cannot_be_compiled_is_refused_alone(model: Any, bench: Bench) -> None:
    bench.add("free", PROMPTS[0], GREEDY)
    bench.step(4)
    bench.add("broken", PROMPTS[1], GREEDY, constraint=Constraint(kind="regex", text="a("))
    bench.finish()
    assert bench.last("broken").error.startswith("The constraint can't be enforced (")
    assert bench.tokens("free") == by_hand(model, PROMPTS[0], GREEDY, 24)


def test_a_model_without_a_usable_tokenizer_refuses_constraints(model: Any) -> None:
    bench = Bench(model)
    bench.add("one", PROMPTS[0], GREEDY, constraint=REGEX)
    assert bench.last("one").error == "The tokenizer of this model can't be used for constraints."
    bench.batch.close()


def test_a_matcher_that_fails_ends_its_sequence_alone(model: Any, bench: Bench, monkeypatch: Any) -> None:
    bench.add("free", PROMPTS[0], GREEDY)
    bench.add("fails", PROMPTS[1], GREEDY, constraint=REGEX)
    while not (begun := [s for s in bench.batch._generating.values() if s.request.id == "fails"]):
        bench.step()
    assert begun[0].matcher is not None
    begun[0].matcher.advance(ord("!"))
    bench.finish()
    assert bench.last("fails").finish == "error"
    assert bench.last("fails").error == TOO_COMPLEX
    assert bench.tokens("free") == by_hand(model, PROMPTS[0], GREEDY, 24)


def test_a_constraint_that_is_slow_to_compile_delays_no_others(model: Any, bench: Bench, monkeypatch: Any) -> None:
    vocabulary = bench.batch._loaded.vocabulary
    assert vocabulary is not None
    compiling, matcher = threading.Event(), vocabulary.matcher

    def slow(constraint: Constraint) -> Matcher:
        compiling.wait(30)
        return matcher(constraint)

    monkeypatch.setattr(vocabulary, "matcher", slow)
    bench.add("large", PROMPTS[1], GREEDY, constraint=REGEX)
    bench.add("left", PROMPTS[2], GREEDY, constraint=LARK)
    bench.add("free", PROMPTS[0], GREEDY)
    bench.step(40)
    assert bench.tokens("free") == by_hand(model, PROMPTS[0], GREEDY, 24)
    bench._note(bench.batch.cancel("left"))
    assert bench.last("left").finish == "cancelled"
    assert "large" not in bench.chunks
    monkeypatch.setattr("inference.constraints.compiler.COMPILE_SECONDS", -1.0)
    bench.add("never", PROMPTS[2], GREEDY, constraint=SCHEMA)
    bench.step()
    assert bench.last("never").error.startswith("The constraint took too long to compile.")
    compiling.set()
    bench.finish()
    assert re.fullmatch(REGEX.text, bench.text("large"))
