"""What is resumed from the prefix cache says what it would have said without: for each kind of attention state."""

from collections.abc import Iterator

import pytest

from inference.types import Sampling
from tests.inference.engine.test_batch import Bench
from tests.inference.tiny_models import CONFIGS, STOP, WINDOW, tiny_model

GREEDY = Sampling(temperature=0.0, logit_bias=((STOP, -100.0),))
HEAD = tuple(7 * number % 290 for number in range(2 * WINDOW + 5))
QUESTIONS = [(11, 12, 13, 14, 15), (21, 22, 23), (31,), (41, 42, 43, 44, 45, 46, 47, 48, 49)]
CACHED = "cached"


class Talk:
    """Runs prompts in one scope, and each again in a scope of its own."""

    def __init__(self, kind: str) -> None:
        self.bench = Bench(tiny_model(kind), cache_bytes=1 << 24)
        self.count = 0

    def ask(self, *prompts: tuple[int, ...], cuts: tuple[int, ...] = ()) -> list[tuple[tuple[int, ...], int]]:
        """The answers to prompts that are asked together, and how many of their tokens came from the cache."""
        names = [f"{self.count + number}" for number in range(len(prompts))]
        self.count += len(prompts)
        for name, prompt in zip(names, prompts, strict=True):
            self.bench.add(name, prompt, GREEDY, cache_scope=CACHED, cuts=cuts)
        self.bench.finish()
        answers = []
        for name, prompt in zip(names, prompts, strict=True):
            self.bench.add(f"{name} alone", prompt, GREEDY, cache_scope=f"{name} alone")
            self.bench.finish()
            assert self.bench.chunks[f"{name} alone"][0].cached_tokens == 0
            assert self.bench.tokens(name) == self.bench.tokens(f"{name} alone") != []
            answers.append((tuple(self.bench.tokens(name)), self.bench.chunks[name][0].cached_tokens))
        return answers


@pytest.fixture(params=sorted(CONFIGS))
def talk(request: pytest.FixtureRequest) -> Iterator[Talk]:
    pytest.importorskip("mlx.core")
    talk = Talk(request.param)
    yield talk
    talk.bench.batch.close()


def test_turns_of_a_conversation_start_where_the_last_one_ended(talk: Talk) -> None:
    """Shorter and longer than the window. The last token of an answer that is cut by its limit is not read."""
    said = HEAD[:6]
    for question in QUESTIONS:
        ((answer, cached),) = talk.ask(said + question)
        assert cached == (0 if said == HEAD[:6] else len(said) - 1)
        said += question + answer


def test_conversations_with_one_head_read_it_once(talk: Talk) -> None:
    """Where the request says where it ends, the first conversation is enough."""
    ((_, first),) = talk.ask(HEAD + QUESTIONS[0], cuts=(len(HEAD),))
    again = talk.ask(*(HEAD + question for question in QUESTIONS[1:]))
    assert first == 0
    assert [cached for _, cached in again] == [len(HEAD)] * 3


def test_a_head_that_nobody_named_is_learned(talk: Talk) -> None:
    """From the second sequence that turns off there; states that can be cut anywhere need not learn."""
    cached = [talk.ask(HEAD + question)[0][1] for question in QUESTIONS]
    learned = 0 if talk.bench.batch._prefix_cache.wants_cuts else len(HEAD)
    assert cached == [0, learned, len(HEAD), len(HEAD)]


def test_the_same_prompt_is_resumed_before_its_answer(talk: Talk) -> None:
    """Also when the answer is another: at the cut before it."""
    prompt = HEAD + QUESTIONS[0]
    talk.ask(prompt, cuts=(len(prompt) - 2,))
    for _ in range(2):
        ((_, cached),) = talk.ask(prompt, cuts=(len(prompt) - 2,))
        assert cached == len(prompt) - (2 if talk.bench.batch._prefix_cache.wants_cuts else 1)


def test_what_a_deleted_response_alone_has_cached_is_read_again(talk: Talk) -> None:
    """By its own continuation; another answer that shares the head loses nothing."""
    cache = talk.bench.batch._prefix_cache
    for name, question in zip(("r", "s"), QUESTIONS, strict=False):
        talk.bench.add(name, HEAD + question, GREEDY, cache_scope=CACHED, cuts=(len(HEAD),), cache_holder=name)
        talk.bench.finish()
    assert cache.holders == {"r", "s"}
    cache.release({"r"})
    cached = [talk.ask((*HEAD, *QUESTIONS[at], *talk.bench.tokens(name), 1))[0][1] for at, name in enumerate("rs")]
    assert cached[0] == len(HEAD) < cached[1]


def test_a_prompt_that_is_cancelled_is_not_read_again(talk: Talk) -> None:
    """What was read of it is kept."""
    prompt = HEAD + QUESTIONS[3]
    talk.bench.add("first", prompt, GREEDY, cache_scope=CACHED)
    talk.bench.step(5)
    talk.bench._note(talk.bench.batch.cancel("first"))
    ((_, cached),) = talk.ask(prompt)
    assert 0 < cached < len(prompt)
    assert cached % 4 == 0
