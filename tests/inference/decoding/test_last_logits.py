"""The logits after each prompt of a batch are those that the model gives without being asked for them alone."""

from typing import Any

import pytest

from tests.inference.tiny_models import CONFIGS, tiny_model

ENDS = (5, 2, 3)


@pytest.mark.parametrize("kind", sorted(CONFIGS))
@pytest.mark.parametrize("selects", [True, False])
def test_logits_are_those_after_the_end_of_each_row(kind: str, selects: bool) -> None:
    """Whether the model can leave out the others or not; and afterwards it gives all of them again."""
    mx = pytest.importorskip("mlx.core")
    from mlx_lm.models.cache import make_prompt_cache

    from inference.decoding.last_logits import last_logits, select_logits

    model = tiny_model(kind)
    tokens = mx.array([[5, 6, 7, 8, 9], [20, 21, 0, 0, 0], [3, 4, 5, 0, 0]])

    def state() -> list[Any]:
        states = [make_prompt_cache(model) for _ in ENDS]
        return [layers[0].merge(layers) for layers in zip(*states, strict=True)]

    whole = model(tokens, cache=state())
    names = set(model.parameters())
    if selects:
        select_logits(model)
    found = last_logits(model, tokens, ENDS, state())
    assert found.shape == (3, whole.shape[-1])
    for row, end in enumerate(ENDS):
        assert mx.allclose(found[row], whole[row, end - 1], atol=1e-4).item()
    assert mx.allclose(model(tokens, cache=state()), whole, atol=1e-4).item()
    assert set(model.parameters()) == names
