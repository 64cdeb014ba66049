"""Whatever kind of state a model has, and whether steps overlap or not, sequences say what they say alone."""

from collections.abc import Iterator
from typing import Any

import pytest

from inference.decoding import decoder
from inference.types import Sampling
from tests.inference.engine.test_batch import Bench
from tests.inference.tiny_models import CONFIGS, SIZE, STOP, WINDOW, tiny_model

pytestmark = pytest.mark.real_model

GREEDY = Sampling(temperature=0.0)
PROMPTS = [(5, 6, 7), (9,), tuple(3 * number % 290 for number in range(2 * WINDOW + 3)), (20, 21, 20, 21, 22, 23, 24)]
TOKENS = 2 * WINDOW


@pytest.fixture(scope="module", params=sorted(CONFIGS))
def model(request: pytest.FixtureRequest) -> Any:
    pytest.importorskip("mlx.core")
    return tiny_model(request.param)


@pytest.fixture(scope="module")
def alone(model: Any) -> list[list[int]]:
    """The greedy answer to each prompt, by mlx-lm's state of one sequence, up to the stop token."""
    return [answer(model, prompt) for prompt in PROMPTS]


@pytest.fixture(params=[0.0, 60.0], ids=["one by one", "overlapping"])
def bench(model: Any, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(decoder, "_SHORT_STEP_SECONDS", request.param)
    bench = Bench(model, cache_bytes=1 << 24)
    yield bench
    bench.batch.close()


def answer(model: Any, prompt: tuple[int, ...]) -> list[int]:
    import mlx.core as mx
    from mlx_lm.models.cache import make_prompt_cache

    state, tokens = make_prompt_cache(model), list(prompt)
    said: list[int] = []
    while len(said) < TOKENS and tokens[-1] != STOP:
        token: Any = mx.argmax(model(mx.array([tokens]), cache=state)[0, -1]).item()
        tokens = [token]
        said += tokens
    return said[:-1] if said[-1] == STOP else said


@pytest.mark.parametrize("pause", [0, 1, 5])
def test_sequences_that_join_and_leave_say_what_they_say_alone(
    bench: Bench, alone: list[list[int]], pause: int
) -> None:
    """They end at their limits, at stop strings, and by being cancelled; they are more than there are prompts."""
    rows = [number % len(PROMPTS) for number in range(9)]
    limits = [TOKENS if number % 3 else 3 + number for number in range(9)]
    for number, (row, limit) in enumerate(zip(rows, limits, strict=True)):
        bench.add(f"{number}", PROMPTS[row], GREEDY, max_tokens=limit, cache_scope=f"{number}")
        bench.step(pause)
        if number == 6:
            bench._note(bench.batch.cancel("4"))
    bench.finish()
    for number, (row, limit) in enumerate(zip(rows, limits, strict=True)):
        said = bench.tokens(f"{number}")
        if number == 4:
            assert said == alone[row][: len(said)]
        else:
            assert said == alone[row][:limit]


def test_states_continue_where_their_sequences_left(bench: Bench, alone: list[list[int]]) -> None:
    """After each number of tokens, beside one that continues and one that has just joined."""
    longest = max(range(len(PROMPTS)), key=lambda row: len(alone[row]))
    for count in range(1, 6):
        bench.add(f"beside {count}", PROMPTS[2], GREEDY, max_tokens=TOKENS)
        name = f"first {count}"
        bench.add(name, PROMPTS[longest], GREEDY, max_tokens=TOKENS, cache_scope=name)
        while name not in bench.chunks or len(bench.tokens(name)) < count:
            bench.step()
        bench.add(f"joins {count}", PROMPTS[0], GREEDY, max_tokens=TOKENS)
        bench._note(bench.batch.cancel(name))
        said = tuple(bench.tokens(name))
        rest = f"rest {count}"
        bench.add(rest, PROMPTS[longest], GREEDY, max_tokens=TOKENS, cache_scope=name, generated=said)
        bench.finish()
        assert [*said, *bench.tokens(rest)] == alone[longest]
        assert bench.tokens(f"beside {count}") == alone[2]
        assert bench.tokens(f"joins {count}") == alone[0]


def test_neighbours_of_every_kind_of_sampling_change_nothing(bench: Bench, alone: list[list[int]]) -> None:
    ways = [
        Sampling(temperature=1.0, seed=3),
        Sampling(temperature=0.7, top_p=0.9, seed=4, frequency_penalty=0.5),
        Sampling(temperature=1.2, top_k=20),
        Sampling(temperature=0.0, logit_bias=((SIZE - 2, 3.0),)),
    ]
    for number, way in enumerate(ways):
        bench.add(f"alone {number}", PROMPTS[3], way, max_tokens=20)
        bench.finish()
    for number, way in enumerate(ways):
        bench.add(f"greedy {number}", PROMPTS[number], GREEDY, max_tokens=TOKENS, top_logprobs=number % 2 or None)
        bench.add(f"beside {number}", PROMPTS[3], way, max_tokens=20)
        bench.step(number)
    bench.finish()
    for number, way in enumerate(ways):
        assert bench.tokens(f"greedy {number}") == alone[number]
        if way.seed is not None or not way.temperature:
            assert bench.tokens(f"beside {number}") == bench.tokens(f"alone {number}")
