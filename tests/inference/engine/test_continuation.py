"""A sequence resumes after the tokens that an earlier run emitted, as if it had not been interrupted."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inference import ScriptedOptions
from inference.types import Chunk, Constraint, GenerationRequest, Sampling, ThinkingLimit
from tests.inference.engine.test_batch import EVERYTHING, PROMPTS, SIZE, STOP, Bench, model
from tests.inference.recorder import Client
from tests.inference.vocabularies import byte_vocabulary

__all__ = ["model"]

JSON = Constraint(
    kind="json_schema",
    text=json.dumps(
        {
            "type": "object",
            "properties": {"a": {"type": "string", "maxLength": 3}, "b": {"type": "boolean"}},
            "required": ["a", "b"],
            "additionalProperties": False,
        }
    ),
)
REGEX = Constraint(kind="regex", text="[a-f]{3}-[0-9]{2}")
GREEDY = Sampling(temperature=0.0)
numbers = itertools.count()


def tokens(chunks: list[Chunk]) -> list[int]:
    return [token for chunk in chunks for token in chunk.tokens]


def text(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks)


def check(whole: list[Chunk], rest: list[Chunk], cut: int, *, logprobs: bool = True) -> None:
    """Check that `rest` continues after the first `cut` chunks of `whole` that have tokens."""
    told = [chunk for chunk in whole if chunk.tokens][:cut]
    assert [chunk.started for chunk in rest] == [True] + [False] * (len(rest) - 1)
    assert tokens(told) + tokens(rest) == tokens(whole)
    assert (rest[-1].finish, rest[-1].error) == (whole[-1].finish, whole[-1].error)
    if told and told[-1].finish:  # it had ended with its last token: all was emitted
        assert text(whole).endswith(text(rest))
    else:
        assert text(told) + text(rest) == text(whole)
    if logprobs:
        scores = [logprob for chunk in (*told, *rest) for logprob in chunk.logprobs]
        assert scores == [logprob for chunk in whole for logprob in chunk.logprobs]


# The scripted engine.


def asked(scripted: Client, message: str, **options: Any) -> GenerationRequest:
    return GenerationRequest(
        id="",
        prompt=scripted.tokenizer.render([{"role": "user", "content": message}]),
        max_tokens=options.pop("max_tokens", 1000),
        sampling=GREEDY,
        **options,
    )


def submit(client: Client, request: GenerationRequest) -> str:
    request_id = f"continuation {next(numbers)}"
    client.engine.submit(replace(request, id=request_id, cache_scope=request.cache_scope or request_id))
    return request_id


def run(client: Client, request: GenerationRequest) -> list[Chunk]:
    return client.recorder.wait(submit(client, request))


WORDS = st.text(st.sampled_from("ab .\n日😀é"), max_size=14)
MESSAGES = st.builds(
    "{}[[say: {}]]{}".format,
    st.just("") | WORDS.map("[[think: {}]]".format),
    st.just('a{"a":"日","b":tru') | WORDS,
    st.sampled_from(["", "[[tokens: 4]]", "[[fail: No.]]"]),
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    message=MESSAGES,
    stop=st.lists(st.text(st.sampled_from("ab .日😀2"), min_size=1, max_size=4), max_size=2).map(tuple),
    max_tokens=st.sampled_from([5, 12, 32]),
    thinking=st.none() | st.integers(0, 12),
    constraint=st.sampled_from([None, JSON, REGEX, Constraint(kind="regex", text="(?s:.*)b")]),
    top_logprobs=st.sampled_from([None, 2]),
)
def test_a_script_resumes_from_any_cut(
    scripted: Client,
    message: str,
    stop: tuple[str, ...],
    max_tokens: int,
    thinking: int | None,
    constraint: Constraint | None,
    top_logprobs: int | None,
) -> None:
    limit = None if thinking is None else ThinkingLimit(
        tokens=thinking, start="<think>", end="</think>", opened=False,
        closing=scripted.tokenizer.encode_markup("\n</think>\n\n"),
    )  # fmt: skip
    request = asked(
        scripted, message, stop=stop, max_tokens=max_tokens,
        thinking=limit, constraint=constraint, top_logprobs=top_logprobs,
    )  # fmt: skip
    whole = run(scripted, request)
    said = tuple(tokens(whole))
    rests = [submit(scripted, replace(request, generated=said[:cut])) for cut in range(len(said) + 1)]
    for cut, rest in enumerate(rests):
        check(whole, scripted.recorder.wait(rest), cut)


def test_text_that_a_cancelled_run_emitted_early_is_emitted_again(scripted: Client) -> None:
    request = asked(scripted, "[[tokens: 3]][[slow: 1000]]", stop=("1 2 4",))
    first = submit(scripted, request)
    scripted.recorder.wait(first, tokens=1)
    scripted.engine.cancel(first)
    assert scripted.recorder.text(first) == "1"
    quick = asked(scripted, "[[tokens: 3]]", stop=("1 2 4",))
    assert text(run(scripted, replace(quick, generated=tuple(scripted.recorder.tokens(first))))) == "1 2 3"


def test_a_script_waits_once(scripted: Client) -> None:
    request = asked(scripted, "[[wait: 1000]][[tokens: 3]]")
    first = tuple(scripted.tokenizer.encode_markup("1"))
    assert text(run(scripted, replace(request, generated=first))) == " 2 3"


@pytest.mark.parametrize("scripted", [ScriptedOptions(context_length=40)], indirect=True)
def test_a_script_without_tokens_left_ends_at_once(scripted: Client) -> None:
    request = asked(scripted, "[[tokens: 100]]")
    whole = run(scripted, request)
    for generated in (tuple(tokens(whole)), (*tokens(whole), *scripted.tokenizer.encode_markup(" 99"))):
        rest = run(scripted, replace(request, generated=generated))
        assert [chunk.started for chunk in rest] == [True, False]


def test_text_that_is_not_in_the_script_cannot_be_continued(scripted: Client) -> None:
    request = asked(scripted, "[[say: one two]]")
    last = run(scripted, replace(request, generated=(1, 2)))[-1]
    assert (last.finish, last.error) == ("error", "The answer that is to be continued is not what the script says.")
    assert last.tokens == ()


# A small model with random weights, whose tokens are bytes: every cut is affordable.


@pytest.fixture
def new_bench(model: Any) -> Iterator[Any]:
    benches: list[Bench] = []

    def new(**options: Any) -> Bench:
        benches.append(Bench(model, vocabulary=byte_vocabulary(SIZE, stop=STOP), **options))
        return benches[-1]

    yield new
    for bench in benches:
        bench.batch.close()


CLOSING = tuple(b"\n</think>\n\n")
THINKING = ThinkingLimit(tokens=5, start="<think>", end="</think>", opened=True, closing=CLOSING)
THEN_LETTERS = Constraint(
    kind="lark", text='start: thought /[\\n]{0,4}/ "[" /[a-z]{3}/ "]"\nthought[lazy]: /(?s:.*)<\\/think>/'
)


@pytest.mark.real_model
@pytest.mark.parametrize(
    "options",
    [
        {"sampling": GREEDY},
        {"sampling": EVERYTHING, "top_logprobs": 0},
        {"sampling": replace(EVERYTHING, presence_penalty=3.0, frequency_penalty=-2.0)},
        {"sampling": Sampling(temperature=1.2, top_p=0.95, seed=7, logit_bias=((STOP, -100.0),))},
        {"sampling": Sampling(temperature=1.0, seed=5, min_p=0.001), "constraint": JSON, "max_tokens": 60},
        {"sampling": GREEDY, "constraint": REGEX},
        {"sampling": GREEDY, "constraint": REGEX, "max_tokens": 4},
        {"sampling": replace(GREEDY, logit_bias=((STOP, -100.0),)), "thinking": THINKING},
        {"sampling": GREEDY, "thinking": THINKING, "constraint": THEN_LETTERS, "max_tokens": 60},
    ],
    ids=str,
)
def test_an_answer_resumes_from_any_cut(new_bench: Any, options: dict[str, Any]) -> None:
    bench = new_bench()
    bench.add("whole", PROMPTS[0], **options)
    bench.finish()
    whole = bench.chunks["whole"]
    said = tuple(tokens(whole))
    assert len(said) > 3
    for cut in range(1, len(said) + 1):
        bench.add(f"{cut}", PROMPTS[0], **options, generated=said[:cut])
    bench.finish()
    for cut in range(1, len(said) + 1):
        check(whole, bench.chunks[f"{cut}"], cut, logprobs=False)
        if options.get("top_logprobs") is not None:
            scores = [logprob.logprob for chunk in bench.chunks[f"{cut}"] for logprob in chunk.logprobs]
            expected = [logprob.logprob for chunk in whole for logprob in chunk.logprobs]
            assert scores == pytest.approx(expected[cut:], abs=1e-3)


@pytest.mark.real_model
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_half_a_character_and_half_a_stop_string_come_with_what_follows(new_bench: Any, data: st.DataObject) -> None:
    """The answer is forced to be this text, by a constraint."""
    words = data.draw(st.text(st.sampled_from("ab日😀é"), min_size=1, max_size=10))
    start = data.draw(st.integers(0, len(words) - 1))
    stop = words[start : start + data.draw(st.integers(1, 4))] + data.draw(st.sampled_from(["", "x"]))
    constraint = Constraint(kind="regex", text=f"{words}!")
    bench = new_bench()
    bench.add("whole", PROMPTS[0], GREEDY, max_tokens=100, constraint=constraint, stop=(stop,))
    bench.finish()
    whole = bench.chunks["whole"]
    said = tuple(tokens(whole))
    for cut in range(1, len(said) + 1):
        bench.add(
            f"{cut}", PROMPTS[0], GREEDY, max_tokens=100, constraint=constraint, stop=(stop,), generated=said[:cut]
        )
    bench.finish()
    for cut in range(1, len(said) + 1):
        check(whole, bench.chunks[f"{cut}"], cut)


@pytest.mark.real_model
def test_a_sequence_without_anything_left_ends_at_once_without_the_model(
    new_bench: Any, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(model), "__call__", lambda *_, **__: pytest.fail("the model ran"))
    bench = new_bench()
    answer = tuple(b"abc-12")
    bench.add("no tokens left", PROMPTS[0], GREEDY, max_tokens=6, generated=answer)
    bench.add("more than were asked for", PROMPTS[0], GREEDY, max_tokens=5, generated=answer)
    bench.add("no context left", PROMPTS[0], GREEDY, max_tokens=1000, generated=(97,) * 507)
    bench.add("whole", PROMPTS[0], GREEDY, constraint=REGEX, generated=answer)
    bench.add("whole and none left", PROMPTS[0], GREEDY, max_tokens=6, constraint=REGEX, generated=answer)
    bench.add("stopped", PROMPTS[0], GREEDY, stop=("c-",), generated=answer)
    bench.add("held back", PROMPTS[0], GREEDY, max_tokens=6, stop=("-123",), generated=answer)
    bench.finish()
    for name, chunks in bench.chunks.items():
        assert [(chunk.started, chunk.tokens) for chunk in chunks] == [(True, ()), (False, ())], name
        assert text(chunks) == ("-12" if name == "held back" else "")
        assert chunks[-1].finish == ("stop" if name.startswith(("whole", "stopped")) else "length"), name


@pytest.mark.real_model
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"generated": (97, SIZE)}, "The answer that is to be continued contains a token that the model doesn't know."),
        ({"generated": (-1,)}, "The answer that is to be continued contains a token that the model doesn't know."),
        ({"generated": (97, 122), "constraint": REGEX}, "The answer that is to be continued breaks its constraint."),
    ],
)
def test_an_impossible_continuation_is_refused(new_bench: Any, options: dict[str, Any], error: str) -> None:
    bench = new_bench()
    bench.add("refused", PROMPTS[0], GREEDY, **options)
    bench.add("beside", PROMPTS[0], GREEDY, max_tokens=2)
    bench.finish()
    assert [(chunk.finish, chunk.error) for chunk in bench.chunks["refused"]] == [("error", error)]
    assert bench.last("beside").finish == "length"


@pytest.mark.real_model
def test_a_preempted_and_resumed_prompt_is_not_read_again(
    new_bench: Any, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampling = replace(GREEDY, logit_bias=((STOP, -100.0),))
    bench = new_bench(cache_bytes=1 << 24)
    bench.add("whole", PROMPTS[3], sampling, cache_scope="other")
    bench.finish()
    bench.add("first", PROMPTS[3], sampling, cache_scope="one")
    while len(bench.chunks.get("first", [])) < 12:
        bench.step()
    bench._note(bench.batch.cancel("first"))
    read: list[int] = []
    call = type(model).__call__

    def counted(self: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        read.append(inputs.size)
        return call(self, inputs, *args, **kwargs)

    monkeypatch.setattr(type(model), "__call__", counted)
    said = tuple(bench.tokens("first"))
    bench.add("second", PROMPTS[3], sampling, cache_scope="one", generated=said)
    bench.finish()
    assert [*said, *bench.tokens("second")] == bench.tokens("whole")
    assert bench.chunks["second"][0].cached_tokens == len(PROMPTS[3])
    assert bench.last("second").cache_write_tokens == 0
    # One run of the model per chosen token: no other token was read.
    assert read == [1] * len(bench.tokens("second"))


@pytest.mark.real_model
def test_no_read_token_is_lost_by_preemption(new_bench: Any) -> None:
    bench = new_bench(cache_bytes=1 << 24)
    bench.add("whole", PROMPTS[3], GREEDY, max_tokens=8)
    bench.finish()
    cached = []
    for steps in range(7):
        bench.add(f"beside {steps}", PROMPTS[0], GREEDY, max_tokens=3)
        bench.step(5)
        bench.add(f"first {steps}", PROMPTS[3], GREEDY, max_tokens=8, cache_scope=f"{steps}")
        bench.step(steps)
        bench._note(bench.batch.cancel(f"first {steps}"))
        said = tuple(bench.tokens(f"first {steps}"))
        bench.add(f"second {steps}", PROMPTS[3], GREEDY, max_tokens=8, cache_scope=f"{steps}", generated=said)
        bench.finish()
        assert [*said, *bench.tokens(f"second {steps}")] == bench.tokens("whole")
        cached.append(bench.chunks[f"second {steps}"][0].cached_tokens)
    # A step reads four of the eight tokens.
    assert cached == [0, 4, 8, 8, 8, 8, 8]


# The real model.


@pytest.mark.real_model
def test_the_model_resumes_in_a_fresh_state(mlx: Client) -> None:
    def question(content: str, **options: Any) -> GenerationRequest:
        prompt = mlx.tokenizer.render([{"role": "user", "content": content}])
        options = {"max_tokens": 6, "sampling": GREEDY, "top_logprobs": 0, **options}
        return GenerationRequest(id="", prompt=prompt, **options)

    requests = [
        question("Write one sentence about the sea."),
        question("Tell me of a bee. 😀", sampling=Sampling(temperature=0.9, top_p=0.9, seed=11)),
        question("Yes, please.", constraint=JSON, max_tokens=40),
    ]
    wholes = [mlx.recorder.wait(request_id) for request_id in [submit(mlx, request) for request in requests]]
    halves = [
        submit(mlx, replace(request, generated=tuple(tokens([chunk for chunk in whole if chunk.tokens][:3]))))
        for request, whole in zip(requests, wholes, strict=True)
    ]
    for whole, half in zip(wholes, halves, strict=True):
        check(whole, mlx.recorder.wait(half), 3, logprobs=False)
    assert set(json.loads(text(wholes[2]))) == {"a", "b"}


@pytest.mark.real_model
def test_the_model_resumes_at_once_after_preemption(mlx: Client) -> None:
    prompt = mlx.tokenizer.render([{"role": "user", "content": "Write one sentence about the sea."}])
    request = GenerationRequest(id="", prompt=prompt, max_tokens=500, sampling=GREEDY, cache_scope="taken out")
    first = submit(mlx, request)
    mlx.recorder.wait(first, tokens=2)
    mlx.engine.cancel(first)
    said = tuple(mlx.recorder.tokens(first))
    second = run(mlx, replace(request, max_tokens=len(said) + 2, generated=said))
    whole = run(mlx, replace(request, max_tokens=len(said) + 2, cache_scope="whole"))
    assert [*said, *tokens(second)] == tokens(whole)
    assert second[0].cached_tokens == len(prompt)
    assert whole[0].cached_tokens == 0
