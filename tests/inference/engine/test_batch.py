"""Sampling settings act on their own sequence alone, as their formulas say, while others join and leave.

The model is a small one with random weights: it says nothing, and its every logit is known.
"""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from inference.types import Chunk, GenerationRequest, ModelInfo, Sampling

pytestmark = pytest.mark.real_model

SIZE = 300
STOP = 299
PROMPTS = [(5, 6, 7, 8, 9), (20, 21, 20, 21), (7,), (100, 5, 6, 101, 102, 103, 5, 6)]
EVERYTHING = Sampling(
    temperature=0.0,
    repetition_penalty=1.4,
    presence_penalty=0.7,
    frequency_penalty=0.9,
    logit_bias=((3, 1.5), (STOP, -100.0)),
)


@pytest.fixture(scope="module")
def model() -> Any:
    mlx = pytest.importorskip("mlx.core")
    from mlx_lm.models.llama import Model, ModelArgs

    mlx.random.seed(4)
    arguments = ModelArgs(
        model_type="llama", hidden_size=32, num_hidden_layers=2, intermediate_size=64, num_attention_heads=4,
        num_key_value_heads=2, rms_norm_eps=1e-5, vocab_size=SIZE, tie_word_embeddings=False,
    )  # fmt: skip
    model = Model(arguments)
    model.lm_head.weight = model.lm_head.weight * 12  # logits as far apart as a trained model's
    mlx.eval(model.parameters())
    return model


class Bench:
    """A batch on this thread, and what its sequences have said."""

    def __init__(
        self,
        model: Any,
        *,
        stop_tokens: tuple[int, ...] = (STOP,),
        cache_bytes: int = 0,
        vocabulary: Any = None,
        speculation: Any = None,
    ) -> None:
        from inference.engine.batch import Batch
        from inference.engine.detokenizer import BytesDetokenizer
        from inference.prefix_cache.layout import Layout
        from inference.prefix_cache.prefix_cache import PrefixCache

        letters = [bytes((number % 256,)) for number in range(SIZE)]
        loaded = SimpleNamespace(
            model=model,
            stop_tokens=stop_tokens,
            new_detokenizer=lambda: BytesDetokenizer(letters),
            vocabulary=vocabulary,
        )
        info = ModelInfo(name="tiny", digest="", context_length=512, vocab_size=SIZE)
        cache = PrefixCache(cache_bytes, Layout.of_model(model))
        self.batch = Batch(
            loaded,  # type: ignore[arg-type]
            info,
            prefill_step=4,
            prefix_cache=cache,
            speculation=speculation,
        )
        self.chunks: dict[str, list[Chunk]] = {}

    def add(self, name: str, prompt: tuple[int, ...], sampling: Sampling, **options: Any) -> None:
        request = GenerationRequest(
            id=name, prompt=prompt, sampling=sampling, max_tokens=options.pop("max_tokens", 24), **options
        )
        self._note(self.batch.add(request))

    def step(self, times: int = 1) -> None:
        for _ in range(times):
            self._note(self.batch.step())

    def finish(self) -> None:
        while len(self.batch):
            self.step()

    def _note(self, chunks: list[Chunk]) -> None:
        for chunk in chunks:
            self.chunks.setdefault(chunk.request_id, []).append(chunk)

    def tokens(self, name: str) -> list[int]:
        return [token for chunk in self.chunks[name] for token in chunk.tokens]

    def text(self, name: str) -> str:
        return "".join(chunk.text for chunk in self.chunks[name])

    def last(self, name: str) -> Chunk:
        return self.chunks[name][-1]


@pytest.fixture
def bench(model: Any) -> Iterator[Bench]:
    bench = Bench(model)
    yield bench
    bench.batch.close()


def by_hand(model: Any, prompt: tuple[int, ...], sampling: Sampling, count: int) -> list[int]:
    """The greedy tokens, one forward pass over everything a token, the formulas written out."""
    import mlx.core as mx

    answer: list[int] = []
    while len(answer) < count:
        logits = model(mx.array([[*prompt, *answer]]))[0, -1].tolist()
        for token in set(prompt) | set(answer):
            by = sampling.repetition_penalty
            logits[token] = logits[token] / by if logits[token] > 0 else logits[token] * by
        for token in set(answer):
            logits[token] -= sampling.frequency_penalty * answer.count(token) + sampling.presence_penalty
        for token, bias in sampling.logit_bias:
            logits[token] += bias
        answer.append(logits.index(max(logits)))
        if answer[-1] == STOP:
            return answer[:-1]
    return answer


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=0.0),
        Sampling(temperature=0.0, repetition_penalty=1.7),
        Sampling(temperature=0.0, repetition_penalty=0.6),
        Sampling(temperature=0.0, presence_penalty=2.0),
        Sampling(temperature=0.0, presence_penalty=-2.0),
        Sampling(temperature=0.0, frequency_penalty=1.5),
        Sampling(temperature=0.0, frequency_penalty=-0.5),
        Sampling(temperature=0.0, logit_bias=((17, 2.0), (20, -100.0))),
        Sampling(temperature=0.0, logit_bias=((42, 100.0),)),
        # The prompts' last tokens are wanted, and what only the prompt has is not penalised.
        Sampling(temperature=0.0, frequency_penalty=2.0, logit_bias=((6, 8.0), (7, 8.0), (9, 8.0), (21, 8.0))),
        EVERYTHING,
    ],
)
def test_penalties_and_bias_follow_their_formulas(model: Any, bench: Bench, sampling: Sampling) -> None:
    for number, prompt in enumerate(PROMPTS):
        bench.add(str(number), prompt, sampling)
    bench.finish()
    for number, prompt in enumerate(PROMPTS):
        assert bench.tokens(str(number)) == by_hand(model, prompt, sampling, 24)


def test_every_sequence_has_its_own_while_others_join_and_leave(model: Any, bench: Bench) -> None:
    plain, penalised = Sampling(temperature=0.0), EVERYTHING
    rows = [(f"{n}", PROMPTS[n % 4], penalised if n % 3 else plain, 5 + 7 * (n % 4)) for n in range(12)]
    for name, prompt, sampling, limit in rows:
        bench.add(name, prompt, sampling, max_tokens=limit)
        bench.step(3)
        if name == "6":
            bench._note(bench.batch.cancel("5"))
    bench.finish()
    for name, prompt, sampling, limit in rows:
        wanted = by_hand(model, prompt, sampling, limit)
        if name == "5":
            assert bench.last(name).finish == "cancelled"
            assert bench.tokens(name) == wanted[: len(bench.tokens(name))]
        else:
            assert bench.tokens(name) == wanted


def test_a_seed_repeats_what_is_penalised_and_cut_beside_any_neighbours(bench: Bench) -> None:
    seeded = Sampling(
        temperature=1.3, top_k=20, top_p=0.95, min_p=0.02, presence_penalty=0.5, frequency_penalty=0.3, seed=9
    )
    bench.add("alone", PROMPTS[0], seeded)
    bench.finish()
    bench.add("before", PROMPTS[1], Sampling(temperature=1.0, top_k=3))
    bench.step(2)
    bench.add("beside", PROMPTS[0], seeded)
    bench.step(4)
    bench.add("after", PROMPTS[2], EVERYTHING)
    bench.finish()
    assert bench.tokens("beside") == bench.tokens("alone")
    assert len(set(bench.tokens("alone"))) > 4


def test_weights_of_16_bits_do_not_let_a_penalty_touch_its_neighbours(model: Any) -> None:
    """Neighbours say the same beside a penalised sequence."""
    import mlx.core as mx
    from mlx.utils import tree_map

    whole = model.parameters()
    model.update(tree_map(lambda weights: weights.astype(mx.bfloat16), whole))
    try:
        tokens = []
        for neighbour in (Sampling(temperature=0.0), Sampling(temperature=0.0, presence_penalty=0.01)):
            bench = Bench(model)
            bench.add("plain", PROMPTS[0], Sampling(temperature=1.0, seed=3), max_tokens=60)
            bench.add("neighbour", PROMPTS[1], neighbour, max_tokens=60)
            bench.finish()
            tokens.append(bench.tokens("plain"))
            bench.batch.close()
        assert tokens[0] == tokens[1]
    finally:
        model.update(whole)


def letters(model: Any, prompt: tuple[int, ...], count: int) -> str:
    tokens = by_hand(model, prompt, Sampling(), count)
    return bytes(token % 256 for token in tokens).decode(errors="replace")


def test_a_stop_string_ends_its_sequence_alone_and_counts_stay_true(model: Any) -> None:
    """The answer ends as a model's own end does; the state that was computed is kept, and right."""
    bench = Bench(model, cache_bytes=1 << 24)
    free = Sampling(temperature=0.0, logit_bias=((65, 60.0), (66, 59.0)), frequency_penalty=2.0)  # A, then A and B
    bench.add("whole", PROMPTS[0], free, max_tokens=30, cache_scope="whole")
    bench.finish()
    text = bench.text("whole")
    assert set(text) == {"A", "B"}
    stop = text[3:6]
    end = text.index(stop)
    bench.add("neighbour", PROMPTS[1], free, max_tokens=30)
    bench.add("stopped", PROMPTS[0], free, max_tokens=30, stop=("zzz", stop), cache_scope="one")
    bench.add("limited", PROMPTS[0], free, max_tokens=end + 3, stop=(stop,))
    bench.add("cut", PROMPTS[0], free, max_tokens=end + 2, stop=(stop,))
    bench.finish()
    assert (bench.text("stopped"), bench.last("stopped").finish) == (text[:end], "stop")
    assert len(bench.tokens("stopped")) == end + 3
    assert (bench.text("limited"), bench.last("limited").finish) == (text[:end], "stop"), (
        "the limit's token completes it"
    )
    assert (bench.text("cut"), bench.last("cut").finish) == (text[: end + 2], "length"), "what was held back comes out"
    assert len(bench.tokens("neighbour")) == 30
    assert bench.last("stopped").cache_write_tokens == len(PROMPTS[0])

    longer = (*PROMPTS[0], *bench.tokens("stopped")[:end], 70, 71)
    bench.add("cached", longer, EVERYTHING, cache_scope="one")
    bench.add("uncached", longer, EVERYTHING, cache_scope="two")
    bench.finish()
    assert bench.chunks["cached"][0].cached_tokens >= len(longer) - 2
    assert bench.chunks["uncached"][0].cached_tokens == 0
    assert bench.tokens("cached") == bench.tokens("uncached") == by_hand(model, longer, EVERYTHING, 24)
    bench.batch.close()


def test_a_cancelled_sequence_gives_out_what_was_held_back(bench: Bench) -> None:
    bench.add("one", PROMPTS[0], Sampling(temperature=0.0, logit_bias=((65, 100.0),)), stop=("AAAAAAAAB",))
    bench.step(6)
    assert bench.text("one") == ""
    count = len(bench.tokens("one"))
    bench._note(bench.batch.cancel("one"))
    assert bench.text("one") == "A" * count != ""


def test_a_bias_on_an_unknown_token_is_refused(bench: Bench) -> None:
    bench.add("one", PROMPTS[0], Sampling(logit_bias=((5, 1.0), (SIZE, 1.0))))
    assert bench.last("one").error == "The logit bias names a token that the model doesn't know."


def test_a_failing_step_still_ends_every_sequence_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sequence that can't be taken out at its stop string ends in an error, with all others."""
    always_a = Sampling(temperature=0.0, logit_bias=((65, 100.0),))
    bench.add("stops", PROMPTS[0], always_a, stop=("AA",))
    bench.add("goes on", PROMPTS[2], always_a)

    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(bench.batch._decoder, "leave", broken)
    bench.finish()
    finishes = {name: [chunk.finish for chunk in chunks if chunk.finish] for name, chunks in bench.chunks.items()}
    assert finishes == {"stops": ["error"], "goes on": ["error"]}
    bench.add("next", PROMPTS[2], always_a, max_tokens=2)
    bench.finish()
    assert bench.text("next") == "AA"
