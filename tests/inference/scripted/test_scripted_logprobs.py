"""The scripted engine's log-probabilities: made up, but in their places."""

import itertools
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inference.scripted.tokenizer import token_bytes
from inference.types import Chunk, Constraint, GenerationRequest, Sampling, TokenLogprob
from tests.inference.recorder import Client

many = settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
numbers = itertools.count()
JSON = Constraint(kind="json_schema", text='{"type": "object", "properties": {"a": {"type": "integer"}}}')


def ask(
    scripted: Client,
    text: str,
    *,
    top_logprobs: int | None,
    stop: tuple[str, ...] = (),
    constraint: Constraint | None = None,
) -> list[Chunk]:
    request = GenerationRequest(
        id=f"logprobs {next(numbers)}",
        prompt=scripted.tokenizer.render([{"role": "user", "content": text}]),
        max_tokens=1000,
        sampling=Sampling(),
        stop=stop,
        constraint=constraint,
        top_logprobs=top_logprobs,
    )
    scripted.engine.submit(request)
    return scripted.recorder.wait(request.id)


def logprobs(chunks: list[Chunk]) -> list[TokenLogprob]:
    return [logprob for chunk in chunks for logprob in chunk.logprobs]


@many
@given(
    text=st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: "[[" not in text),
    count=st.integers(0, 20),
    constraint=st.sampled_from([None, JSON]),
)
def test_every_token_has_its_own_and_so_many_of_the_likeliest(
    scripted: Client, text: str, count: int, constraint: Constraint | None
) -> None:
    chunks = ask(scripted, text, top_logprobs=count, constraint=constraint)
    assert all(len(chunk.logprobs) == len(chunk.tokens) for chunk in chunks)
    spelt = b"".join(logprob.token for logprob in logprobs(chunks))
    assert spelt.decode() == "".join(chunk.text for chunk in chunks)
    for position, logprob in enumerate(logprobs(chunks)):
        assert logprob.logprob == -0.125 * (1 + position % 4)
        assert len({token for token, _ in logprob.top}) == len(logprob.top) == count
        assert logprob.top[:1] == ((logprob.token, logprob.logprob),)[:count]
        assert all(len(token) == 1 for token, _ in logprob.top[1:])
        values = [value for _, value in logprob.top]
        assert values == sorted(values, reverse=True)
        assert sum(map(math.exp, values)) <= 1


@pytest.mark.parametrize("constraint", [None, JSON])
def test_who_does_not_ask_gets_none(scripted: Client, constraint: Constraint | None) -> None:
    chunks = ask(scripted, "Hello", top_logprobs=None, constraint=constraint)
    assert sum(len(chunk.tokens) for chunk in chunks) > 1
    assert logprobs(chunks) == []


def test_the_tokens_of_a_stop_string_have_theirs(scripted: Client) -> None:
    chunks = ask(scripted, "[[say: one two three four]]", top_logprobs=1, stop=("two three",))
    assert "".join(chunk.text for chunk in chunks) == "one "
    assert [logprob.token for logprob in logprobs(chunks)] == [b"one", b" two", b" three"]
    assert [token_bytes(token) for chunk in chunks for token in chunk.tokens] == [b"one", b" two", b" three"]
