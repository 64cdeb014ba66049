"""Log-probabilities are those that a token was drawn with, whatever runs beside it, and always finite.

The model is the small one with random weights, whose every logit is known; the real one speaks once.
"""

import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.engine.detokenizer import BytesDetokenizer, WindowDetokenizer
from inference.types import Constraint, GenerationRequest, Sampling, TokenLogprob
from tests.inference.engine.test_batch import EVERYTHING, PROMPTS, SIZE, STOP, Bench, model
from tests.inference.recorder import Client
from tests.inference.vocabularies import byte_vocabulary

__all__ = ["model"]

pytestmark = pytest.mark.real_model

GREEDY = Sampling(temperature=0.0)


@pytest.fixture
def bench(model: Any) -> Iterator[Bench]:
    bench = Bench(model, vocabulary=byte_vocabulary(SIZE, stop=STOP))
    yield bench
    bench.batch.close()


def logprobs(bench: Bench, name: str) -> list[TokenLogprob]:
    assert all(len(chunk.logprobs) in (0, len(chunk.tokens)) for chunk in bench.chunks[name])
    return [logprob for chunk in bench.chunks[name] for logprob in chunk.logprobs]


def by_hand(model: Any, prompt: tuple[int, ...], answer: list[int], sampling: Sampling) -> list[float]:
    """The log-probabilities of all tokens after this answer, the formulas written out."""
    import mlx.core as mx

    logits = model(mx.array([[*prompt, *answer]]))[0, -1].tolist()
    for token in set(prompt) | set(answer):
        by = sampling.repetition_penalty
        logits[token] = logits[token] / by if logits[token] > 0 else logits[token] * by
    for token in set(answer):
        logits[token] -= sampling.frequency_penalty * answer.count(token) + sampling.presence_penalty
    for token, bias in sampling.logit_bias:
        logits[token] += bias
    total = math.log(sum(map(math.exp, logits)))
    return [logit - total for logit in logits]


@pytest.mark.parametrize(
    "sampling",
    [
        GREEDY,
        Sampling(temperature=1.8, seed=1),
        Sampling(temperature=0.5, top_k=2, top_p=0.6, min_p=0.2, seed=2),
        EVERYTHING,
    ],
)
def test_the_values_are_those_at_temperature_1_of_what_penalties_and_bias_leave(
    model: Any, bench: Bench, sampling: Sampling
) -> None:
    for number, prompt in enumerate(PROMPTS):
        bench.add(str(number), prompt, sampling, max_tokens=8, top_logprobs=(0, 1, 7, 20)[number])
    bench.finish()
    for number, prompt in enumerate(PROMPTS):
        tokens = bench.tokens(str(number))
        got = logprobs(bench, str(number))
        assert len(got) == len(tokens) > 0
        for position, (token, logprob) in enumerate(zip(tokens, got, strict=True)):
            wanted = by_hand(model, prompt, tokens[:position], sampling)
            assert logprob.token == bytes((token % 256,))
            assert logprob.logprob == pytest.approx(wanted[token], abs=1e-4)
            likeliest = sorted(range(SIZE), key=wanted.__getitem__, reverse=True)[: (0, 1, 7, 20)[number]]
            assert [spelt for spelt, _ in logprob.top] == [bytes((token % 256,)) for token in likeliest]
            assert [value for _, value in logprob.top] == pytest.approx([wanted[t] for t in likeliest], abs=1e-4)
            assert sum(math.exp(value) for _, value in logprob.top) <= 1 + 1e-5


def test_what_is_chosen_greedily_comes_first(bench: Bench) -> None:
    bench.add("one", PROMPTS[0], GREEDY, top_logprobs=3)
    bench.finish()
    got = logprobs(bench, "one")
    assert len(got) == 24
    assert all(logprob.top[0] == (logprob.token, logprob.logprob) for logprob in got)


def test_neighbours_change_nothing_and_get_none_unless_they_ask(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from inference.decoding.scores import PendingScores

    sizes = []

    def counted(logprobs: Any, tokens: Any, counts: Any) -> Any:
        sizes.append(len(counts))
        return PendingScores(logprobs, tokens, counts)

    monkeypatch.setattr("inference.decoding.decoder.PendingScores", counted)
    bench.add("alone", PROMPTS[0], EVERYTHING, top_logprobs=5)
    bench.finish()
    bench.add("before", PROMPTS[1], GREEDY, max_tokens=9)
    bench.add("seeded", PROMPTS[3], Sampling(temperature=1.1, seed=4))
    bench.step(3)
    bench.add("beside", PROMPTS[0], EVERYTHING, top_logprobs=5)
    bench.step(3)
    bench.add("asks for more", PROMPTS[2], Sampling(temperature=1.0), max_tokens=5, top_logprobs=20)
    bench.finish()
    assert bench.tokens("alone") == bench.tokens("beside")
    for alone, beside in zip(logprobs(bench, "alone"), logprobs(bench, "beside"), strict=True):
        assert beside.logprob == pytest.approx(alone.logprob, abs=1e-4)
        assert [token for token, _ in beside.top] == [token for token, _ in alone.top]
        assert [value for _, value in beside.top] == pytest.approx([value for _, value in alone.top], abs=1e-4)
    assert {len(logprob.top) for logprob in logprobs(bench, "asks for more")} == {20}
    assert logprobs(bench, "before") == logprobs(bench, "seeded") == []
    assert sum(sizes) == sum(len(bench.tokens(name)) for name in ("alone", "beside", "asks for more"))


def test_under_a_constraint_what_is_forced_is_certain_and_what_is_forbidden_absent(bench: Bench) -> None:
    bench.add("free", PROMPTS[1], GREEDY, top_logprobs=4)
    bench.add("one", PROMPTS[0], GREEDY, constraint=Constraint(kind="regex", text="ab[cde]f"), top_logprobs=20)
    bench.finish()
    first, second, choice, last = logprobs(bench, "one")
    for logprob, forced in ((first, b"a"), (second, b"b"), (last, b"f")):
        assert (logprob.token, logprob.logprob, logprob.top) == (forced, 0.0, ((forced, 0.0),))
    assert {token for token, _ in choice.top} == {b"c", b"d", b"e"}
    assert sum(math.exp(value) for _, value in choice.top) == pytest.approx(1.0, abs=1e-5)
    assert choice.top[0] == (choice.token, choice.logprob)
    assert all(len(logprob.top) == 4 for logprob in logprobs(bench, "free"))


def test_the_tokens_of_a_stop_string_have_theirs_and_the_stop_token_has_none(bench: Bench) -> None:
    letters = Sampling(temperature=0.0, logit_bias=((65, 60.0), (66, 59.0)), frequency_penalty=2.0)  # A, then A and B
    bench.add("whole", PROMPTS[0], letters, top_logprobs=0)
    bench.finish()
    text = bench.text("whole")
    assert b"".join(logprob.token for logprob in logprobs(bench, "whole")).decode() == text
    stop = text[3:6]
    bench.add("stopped", PROMPTS[0], letters, stop=(stop,), top_logprobs=1)
    wants_to_end = Sampling(temperature=0.0, logit_bias=((STOP, 100.0),))
    bench.add("ends", PROMPTS[1], wants_to_end, constraint=Constraint(kind="regex", text="ab*"), top_logprobs=2)
    bench.finish()
    assert bench.text("stopped") == text[: text.index(stop)]
    spelt = b"".join(logprob.token for logprob in logprobs(bench, "stopped"))
    assert spelt.decode() == text[: text.index(stop) + 3]
    assert (bench.tokens("ends"), bench.last("ends").finish) == ([ord("a")], "stop")
    assert [logprob.token for logprob in logprobs(bench, "ends")] == [b"a"]


@pytest.mark.parametrize("count", [-1, 21])
def test_a_count_out_of_range_is_refused(bench: Bench, count: int) -> None:
    bench.add("one", PROMPTS[0], GREEDY, top_logprobs=count)
    assert bench.last("one").error == "`top_logprobs` must be from 0 to 20."


values = st.floats(max_value=0.0, width=32, allow_infinity=True) | st.sampled_from([-1.0, -2.0, math.nan, -math.inf])


@given(st.data(), st.integers(1, 40))
def test_whatever_the_numbers_are_what_comes_out_is_finite_and_in_order(data: st.DataObject, size: int) -> None:
    """Equals, forbidden tokens, and a model whose numbers overflowed."""
    import mlx.core as mx

    from inference.decoding.scores import PendingScores

    rows = data.draw(st.lists(st.lists(values, min_size=size, max_size=size), min_size=1, max_size=3))
    asked = [(row, data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, 20))) for row in rows]
    logprobs, tokens, counts = zip(*asked, strict=True)
    scores = PendingScores(mx.array(logprobs, dtype=mx.float32), mx.array(tokens), counts).read()
    for (row, token, count), (chosen, top) in zip(asked, scores, strict=True):
        possible = [max(value, -9999.0) for value in row if math.isfinite(value)]
        assert chosen == (max(row[token], -9999.0) if math.isfinite(row[token]) else -9999.0)
        assert [value for _, value in top] == sorted(possible, reverse=True)[:count]
        assert all(math.isfinite(row[other]) and value == max(row[other], -9999.0) for other, value in top)
        assert len({other for other, _ in top}) == len(top)
        if top and row[token] == max(value for value in row if math.isfinite(value)):
            assert top[0][0] == token


def test_words_of_a_tokenizer_without_bytes_keep_their_spaces() -> None:
    from inference.decoding.scores import Scores
    from inference.engine.logprobs import Spelling

    words = [b" one", b" two", b"s", *(bytes((byte,)) for byte in "é".encode())]

    def decode(tokens: list[int]) -> str:
        return b"".join(words[token] for token in tokens).decode(errors="replace").removeprefix(" ")

    def new() -> WindowDetokenizer:
        return WindowDetokenizer(decode)

    spelling, detokenizer, answer = Spelling(new), new(), []
    for token in (0, 1, 2, 3, 4, 1):
        scores = Scores(-1.0, [(token, -1.0), (1 - min(token, 1), -2.0)])
        answer.append(spelling.describe(token, scores, text=detokenizer.add(token)))
    assert [logprob.token for logprob in answer] == [b"one", b" two", b"s", b"", "é".encode(), b" two"]
    assert all(logprob.top[0] == (logprob.token, -1.0) for logprob in answer)
    assert [logprob.top[1][0] for logprob in answer[:3]] == [b" two", b" one", b" one"]


def test_a_token_beyond_the_tokenizer_spells_nothing() -> None:
    from inference.decoding.scores import Scores
    from inference.engine.logprobs import Spelling

    spelling = Spelling(lambda: BytesDetokenizer([b"a"]))
    described = spelling.describe(0, Scores(-0.5, [(0, -0.5), (9, -1.0)]), text="a")
    assert described == TokenLogprob(token=b"a", logprob=-0.5, top=((b"a", -0.5), (b"", -1.0)))


def test_the_real_model_spells_half_characters(mlx: Client) -> None:
    prompt = mlx.tokenizer.render([{"role": "user", "content": "Repeat exactly: 😀🎉 日本語のテキスト 🌍"}])
    request = GenerationRequest(id="logprobs", prompt=prompt, max_tokens=24, sampling=GREEDY, top_logprobs=5)
    mlx.engine.submit(request)
    chunks = mlx.recorder.wait("logprobs")
    got = [logprob for chunk in chunks for logprob in chunk.logprobs]
    assert len(got) == sum(len(chunk.tokens) for chunk in chunks)
    assert b"".join(logprob.token for logprob in got).decode(errors="ignore") == mlx.recorder.text("logprobs")
    assert any(logprob.token.decode(errors="ignore").encode() != logprob.token for logprob in got)
    for logprob in got:
        assert len(logprob.top) == 5
        assert logprob.top[0] == (logprob.token, logprob.logprob)
        assert sum(math.exp(value) for _, value in logprob.top) <= 1 + 1e-5
