"""Rejected tokens leave no trace in a model's state, of whatever kind it is.

The models are small ones with random weights, which seldom repeat anything. So what is drafted is the known answer with
wrong tokens in it: of most passes a part is accepted. The answers go past the end of the window.
"""

from collections.abc import Callable
from typing import Any

import pytest

from inference.speculation.acceptance import DraftToken
from inference.speculation.drafter import Drafter
from inference.speculation.options import SpeculationOptions
from inference.speculation.pass_costs import PassCosts
from inference.types import Sampling
from tests.inference.engine.test_batch import SIZE, Bench

pytestmark = pytest.mark.real_model

WINDOW = 12
PROMPTS = [
    (5, 6, 7, 8, 5, 6, 7, 8, 5, 6),
    (20, 21, 20, 21, 22),
    (*range(30, 60), 30, 31),
    (9, 9, 9),
]
SAMPLINGS = [
    Sampling(temperature=0.0),
    Sampling(temperature=0.7, seed=3),
    Sampling(temperature=0.0, repetition_penalty=0.8),
    Sampling(temperature=0.0, logit_bias=((65, 4.0), (66, 4.0))),
]


def attends_to_everything() -> Any:
    from mlx_lm.models.llama import Model, ModelArgs

    return Model(
        ModelArgs(
            model_type="llama", hidden_size=32, num_hidden_layers=2, intermediate_size=64, num_attention_heads=4,
            num_key_value_heads=2, rms_norm_eps=1e-5, vocab_size=SIZE, tie_word_embeddings=False,
        )
    )  # fmt: skip


def attends_to_a_window() -> Any:
    from mlx_lm.models.gemma3_text import Model, ModelArgs

    return Model(
        ModelArgs(
            model_type="gemma3_text", hidden_size=32, num_hidden_layers=3, intermediate_size=64, num_attention_heads=2,
            head_dim=16, num_key_value_heads=1, vocab_size=SIZE, sliding_window=WINDOW, sliding_window_pattern=3,
        )
    )  # fmt: skip


def is_recurrent_in_part() -> Any:
    from mlx_lm.models.lfm2 import Model, ModelArgs

    return Model(
        ModelArgs(
            model_type="lfm2", vocab_size=SIZE, hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=512, norm_eps=1e-5, conv_bias=False, conv_L_cache=3,
            block_dim=32, block_ff_dim=64, block_multiple_of=8, block_ffn_dim_multiplier=1.0,
            block_auto_adjust_ff_dim=False, layer_types=["conv", "full_attention", "conv"],
        )
    )  # fmt: skip


MODELS: list[Callable[[], Any]] = [attends_to_everything, attends_to_a_window, is_recurrent_in_part]


@pytest.fixture(autouse=True)
def every_draft_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PassCosts, "best_length", lambda self, expected: max(map(len, expected)) - 1)


@pytest.fixture(scope="module", params=MODELS, ids=lambda made: made.__name__)
def model(request: pytest.FixtureRequest) -> Any:
    import mlx.core as mx
    from mlx.utils import tree_map

    mx.random.seed(5)
    model = request.param()
    model.update(tree_map(lambda weights: weights * 2 if weights.ndim > 1 else weights, model.parameters()))
    mx.eval(model.parameters())
    return model


def say(model: Any, speculation: SpeculationOptions | None, *, rows: list[int], join_after: int = 0) -> Bench:
    bench = Bench(model, speculation=speculation)
    for row in rows:
        bench.add(f"{row}", PROMPTS[row], SAMPLINGS[row], max_tokens=45)
        bench.step(join_after)
    bench.finish()
    bench.batch.close()
    return bench


def draft_from(answers: dict[tuple[int, ...], list[int]]) -> Callable[[Drafter, int], list[DraftToken]]:
    """Drafts the answers, by prompt, with every fifth token wrong."""

    def draft(drafter: Drafter, limit: int) -> list[DraftToken]:
        known = drafter._history._buffer[: len(drafter._history)].tolist()
        prompt = next(prompt for prompt in answers if tuple(known[: len(prompt)]) == prompt)
        begin = len(known) - len(prompt)
        rest = answers[prompt][begin : begin + min(limit, 6)]
        return [DraftToken(token if (len(known) + n) % 5 else 1, 8) for n, token in enumerate(rest)]

    return draft


@pytest.mark.parametrize("row", range(4))
def test_one_sequence_says_the_same_past_its_window(model: Any, row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"{row}"
    plain = say(model, None, rows=[row])
    monkeypatch.setattr(Drafter, "_looked_up", draft_from({PROMPTS[row]: plain.tokens(name)}))
    drafting = say(model, SpeculationOptions(), rows=[row])
    assert drafting.tokens(name) == plain.tokens(name)
    last = drafting.last(name)
    assert last.drafted_tokens > last.accepted_tokens > 20


@pytest.mark.parametrize("join_after", [0, 5, 30])
def test_several_sequences_say_the_same_while_others_join_and_leave(
    model: Any, join_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the state of several can't be rewound, only those that are alone are drafted for."""
    rows = [0, 1, 2, 3]
    plain = say(model, None, rows=rows, join_after=join_after)
    answers = {PROMPTS[row]: plain.tokens(f"{row}") for row in rows}
    monkeypatch.setattr(Drafter, "_looked_up", draft_from(answers))
    drafting = say(model, SpeculationOptions(), rows=rows, join_after=join_after)
    for row in rows:
        assert drafting.tokens(f"{row}") == plain.tokens(f"{row}")
    if "Llama" in repr(model):
        assert all(drafting.last(f"{row}").accepted_tokens > 10 for row in rows)


def test_states_that_are_unknown_are_not_rewound() -> None:
    from mlx_lm.models.cache import ArraysCache, BatchKVCache, BatchRotatingKVCache, KVCache

    from inference.speculation.rewinding import can_rewind

    assert can_rewind([BatchKVCache([0, 2]), BatchKVCache([0, 2])])
    assert can_rewind([BatchRotatingKVCache(8, [0]), BatchKVCache([0])])
    assert not can_rewind([BatchRotatingKVCache(8, [0, 0])])
    assert not can_rewind([BatchRotatingKVCache(8, [0]), ArraysCache(1, left_padding=[0])])
    assert not can_rewind([KVCache()])
    assert not can_rewind([])
