"""A sequence says the same with drafts as without, whatever is asked of it and whoever joins.

Every draft is verified here, however bad, so that most are rejected in part.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inference.speculation.options import SpeculationOptions
from inference.speculation.pass_costs import PassCosts
from inference.types import Constraint, Sampling, ThinkingLimit
from tests.inference.engine.test_batch import EVERYTHING, PROMPTS, SIZE, STOP, Bench, model
from tests.inference.vocabularies import byte_vocabulary

__all__ = ["model"]

pytestmark = pytest.mark.real_model

GREEDY = Sampling(temperature=0.0)
SEEDED = Sampling(temperature=0.8, top_p=0.95, seed=7)
REPETITIVE = (5, 6, 7, 8, 5, 6, 7, 8, 5, 6)
SCHEMA = Constraint(
    kind="json_schema",
    text=json.dumps(
        {
            "type": "object",
            "properties": {"identifier": {"type": "boolean"}, "other": {"enum": ["first", "second"]}},
            "required": ["identifier", "other"],
            "additionalProperties": False,
        }
    ),
)


@pytest.fixture(autouse=True)
def every_draft_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PassCosts, "best_length", lambda self, expected: max(map(len, expected)) - 1)


@pytest.fixture
def benches(model: Any) -> Iterator[Callable[[], tuple[Bench, Bench]]]:
    """Makes a bench that drafts, and one that doesn't."""
    opened: list[Bench] = []

    def make() -> tuple[Bench, Bench]:
        vocabulary = byte_vocabulary(SIZE, stop=STOP)
        pair = tuple(
            Bench(model, vocabulary=vocabulary, cache_bytes=1 << 24, speculation=speculation)
            for speculation in (SpeculationOptions(), None)
        )
        opened.extend(pair)
        return pair[0], pair[1]

    yield make
    for bench in opened:
        bench.batch.close()


def said(bench: Bench, name: str) -> tuple[list[int], str, Any, str]:
    last = bench.last(name)
    return bench.tokens(name), bench.text(name), last.finish, last.error


requests = st.tuples(
    st.builds(
        lambda base, times: tuple(base * times),
        st.lists(st.integers(0, 250), min_size=1, max_size=6),
        st.integers(1, 6),
    ),
    st.sampled_from([GREEDY, SEEDED, EVERYTHING, replace(SEEDED, frequency_penalty=0.4, seed=3)]),
    st.integers(1, 50),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=st.lists(requests, min_size=1, max_size=5), pause=st.integers(0, 4))
def test_tokens_are_those_without_drafts_while_sequences_join_and_leave(
    benches: Callable[[], tuple[Bench, Bench]], asked: list[Any], pause: int
) -> None:
    """Five sequences are more than drafts are made for, and those that remain are drafted for again."""
    drafting, plain = benches()
    for bench in (drafting, plain):
        for number, (prompt, sampling, limit) in enumerate(asked):
            bench.add(str(number), prompt, sampling, max_tokens=limit, cache_scope=f"{number}")
            bench.step(pause)
        bench.finish()
    for number in range(len(asked)):
        assert said(drafting, str(number)) == said(plain, str(number))


def test_what_is_repeated_takes_fewer_steps_and_is_counted(benches: Callable[[], tuple[Bench, Bench]]) -> None:
    drafting, plain = benches()
    repeats = Sampling(temperature=0.0, logit_bias=((65, 100.0),))
    for bench in (drafting, plain):
        bench.add("one", PROMPTS[0], repeats, max_tokens=100)
        bench.finish()
    assert said(drafting, "one") == said(plain, "one")
    last = drafting.last("one")
    assert 80 < last.accepted_tokens <= last.drafted_tokens
    assert len(drafting.chunks["one"]) < 20
    assert plain.last("one").drafted_tokens == 0


def test_log_probabilities_are_those_without_drafts(benches: Callable[[], tuple[Bench, Bench]]) -> None:
    drafting, plain = benches()
    for bench in (drafting, plain):
        bench.add("greedy", REPETITIVE, GREEDY, max_tokens=40, top_logprobs=3)
        bench.add("penalised", REPETITIVE, EVERYTHING, max_tokens=40, top_logprobs=0)
        bench.finish()
    for name in ("greedy", "penalised"):
        scores, expected = (
            [logprob for chunk in bench.chunks[name] for logprob in chunk.logprobs] for bench in (drafting, plain)
        )
        assert [score.token for score in scores] == [score.token for score in expected]
        assert len(scores) == len(drafting.tokens(name))
        assert [score.logprob for score in scores] == pytest.approx([score.logprob for score in expected], abs=1e-3)
        assert [len(score.top) for score in scores] == [len(score.top) for score in expected]
    assert drafting.last("greedy").drafted_tokens > 0


@pytest.mark.parametrize("sampling", [GREEDY, SEEDED], ids=["greedy", "seeded"])
def test_a_constraint_holds_and_drafts_what_it_forces(
    benches: Callable[[], tuple[Bench, Bench]], sampling: Sampling
) -> None:
    drafting, plain = benches()
    for bench in (drafting, plain):
        bench.add("json", PROMPTS[0], sampling, max_tokens=100, constraint=SCHEMA)
        bench.add("free", REPETITIVE, GREEDY, max_tokens=30)
        bench.finish()
    for name in ("json", "free"):
        assert said(drafting, name) == said(plain, name)
    assert set(json.loads(drafting.text("json"))) == {"identifier", "other"}
    assert drafting.last("json").accepted_tokens > 10


def test_a_constraint_that_ends_inside_a_draft_ends_the_answer(benches: Callable[[], tuple[Bench, Bench]]) -> None:
    """What followed in the prompt is not said."""
    prompt = tuple(b"abc-12 and more, abc-12 and more, ")
    constraint = Constraint(kind="regex", text="abc-12 an|abc-[0-9]{2} and")
    drafting, plain = benches()
    for bench in (drafting, plain):
        bench.add("one", prompt, GREEDY, max_tokens=40, constraint=constraint)
        bench.finish()
    assert said(drafting, "one") == said(plain, "one")
    assert drafting.last("one").finish == "stop"


def test_a_stop_string_inside_accepted_tokens_ends_the_answer_there(
    benches: Callable[[], tuple[Bench, Bench]],
) -> None:
    """Tokens after it are not in the answer, and the state that is kept continues it."""
    repeats = Sampling(temperature=0.0, logit_bias=((65, 60.0),))
    drafting, plain = benches()
    for bench in (drafting, plain):
        for count in (2, 5, 9, 14):
            name = f"{count}"
            bench.add(name, PROMPTS[0], repeats, max_tokens=60, stop=("A" * count,), cache_scope=name)
            bench.finish()
            bench.add(f"next {count}", (*PROMPTS[0], *[65] * count, 7, 7), GREEDY, cache_scope=name)
            bench.finish()
    for name in plain.chunks:
        assert said(drafting, name) == said(plain, name)
    assert len(drafting.tokens("9")) == 9


def test_a_cancelled_sequence_resumes_from_its_tokens(benches: Callable[[], tuple[Bench, Bench]]) -> None:
    """Cut between two passes, with the randomness of its seed, as a job is that another worker continues."""
    drafting, plain = benches()
    plain.add("whole", REPETITIVE, SEEDED, max_tokens=50)
    plain.finish()
    for steps in range(1, 12, 3):
        first, rest = f"first {steps}", f"rest {steps}"
        drafting.add(first, REPETITIVE, SEEDED, max_tokens=50, cache_scope=first)
        drafting.step(steps)
        drafting._note(drafting.batch.cancel(first))
        generated = tuple(drafting.tokens(first))
        drafting.add(rest, REPETITIVE, SEEDED, max_tokens=50, generated=generated, cache_scope=first)
        drafting.finish()
        assert [*generated, *drafting.tokens(rest)] == plain.tokens("whole")


def test_nothing_is_kept_of_sequences_that_have_left(benches: Callable[[], tuple[Bench, Bench]]) -> None:
    """However early they were cancelled."""
    drafting, _ = benches()
    for steps in range(6):
        drafting.add(f"{steps}", PROMPTS[steps % 2], GREEDY, max_tokens=40)
        drafting.step(steps)
        drafting._note(drafting.batch.cancel(f"{steps}"))
    drafting.add("ends", PROMPTS[1], GREEDY, max_tokens=5)
    drafting.finish()
    assert drafting.batch._decoder.rows == []
    assert drafting.batch._generating == {}


def test_thinking_ends_at_its_limit(benches: Callable[[], tuple[Bench, Bench]]) -> None:
    limit = ThinkingLimit(tokens=9, start="<t>", end="</t>", opened=True, closing=tuple(b"</t>"))
    repeats = Sampling(temperature=0.0, logit_bias=((65, 60.0),))
    drafting, plain = benches()
    for bench in (drafting, plain):
        bench.add("one", PROMPTS[0], repeats, max_tokens=40, thinking=limit)
        bench.finish()
    assert said(drafting, "one") == said(plain, "one")
    assert drafting.text("one").startswith("A" * 9 + "</t>A")
    assert drafting.last("one").accepted_tokens > 10


def test_sampling_without_a_seed_keeps_its_distribution(model: Any) -> None:
    """Of two likely tokens that follow each other at random, each is chosen about as often as its weight says."""
    import mlx.core as mx

    mx.random.seed(11)
    fair = Sampling(temperature=1.0, logit_bias=((65, 200.0), (66, 200.0)), top_k=2)
    shares = []
    for speculation in (SpeculationOptions(), None):
        bench = Bench(model, speculation=speculation)
        for number in range(4):
            bench.add(f"{number}", PROMPTS[number], fair, max_tokens=200)
        bench.finish()
        tokens = [token for number in range(4) for token in bench.tokens(f"{number}")]
        assert set(tokens) <= {65, 66}
        shares.append(tokens.count(65) / len(tokens))
        bench.batch.close()
    # Four standard deviations of the difference of two shares of 800.
    assert abs(shares[0] - shares[1]) < 0.1
