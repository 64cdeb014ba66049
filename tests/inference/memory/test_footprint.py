"""What a model needs by its files: the forms of weights and of states, and what of it a machine has room for."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from inference import Footprint, read_footprint
from inference.memory import StateCost, bytes_for_prompts, footprint
from tests.inference.tiny_llama import STATE_BYTES_PER_TOKEN, write_tiny_llama

GIB = 1 << 30
Tensors = dict[str, tuple[str, list[int], int]]
"""By name: type, shape and bytes."""


def read(directory: Path, *, memory: int = GIB) -> Footprint:
    return read_footprint(directory, memory=memory, batch_size=4, prefill_step=64)


def write(directory: Path, tensors: Tensors, **config: Any) -> Path:
    """A model whose weights are a header without content."""
    directory.mkdir(exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config))
    header, end = {}, 0
    for name, (kind, shape, size) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    (directory / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)
    return directory


ATTENTION = {"num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 2, "hidden_size": 64}
PACKED: Tensors = {
    "layer.weight": ("U32", [64, 8], 2048),  # 64 numbers of 4 bits per row
    "layer.scales": ("F16", [64, 1], 128),
    "layer.biases": ("F16", [64, 1], 128),
    "norm.weight": ("F16", [64], 128),
}


def test_weights_and_state_are_those_of_the_loaded_model(tmp_path: Path) -> None:
    """As its engine would measure them."""
    mlx = pytest.importorskip("mlx.core")
    from mlx_lm import utils
    from mlx_lm.models.cache import make_prompt_cache

    directory = write_tiny_llama(tmp_path / "tiny")
    model, _ = utils.load_model(directory)
    cache = make_prompt_cache(model)
    mlx.eval(model(mlx.array([[5] * 300]), cache=cache))
    found = read(directory)
    assert found.weights == found.loading == sum(value.nbytes for value in _leaves(model.parameters()))
    assert found.state.of(300) == sum(layer.nbytes for layer in cache) == STATE_BYTES_PER_TOKEN * 512


def _leaves(tree: Any) -> list[Any]:
    branches = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else None
    return [tree] if branches is None else [leaf for branch in branches for leaf in _leaves(branch)]


def test_on_a_cpu_quantised_weights_become_fp32_if_these_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are in memory while that is done. On a GPU they stay as they are."""
    parameters = 64 * 64 + 64
    model = write(tmp_path / "model", PACKED, quantization={"bits": 4, "group_size": 64}, **ATTENTION)
    monkeypatch.setattr(footprint, "computes_on_cpu", lambda: True)
    roomy = read(model)
    assert (roomy.weights, roomy.loading, roomy.as_fp32) == (4 * parameters, 4 * parameters + 2432, True)
    assert roomy.state.per_token == 6 * 2 * 2 * 8 * 4
    tight = read(model, memory=5 * parameters)
    assert (tight.weights, tight.loading, tight.as_fp32) == (2432, 2432, False)
    assert tight.state.per_token == 6 * 2 * 2 * 8 * 2
    monkeypatch.setattr(footprint, "computes_on_cpu", lambda: False)
    assert (read(model).weights, read(model).step_per_token) == (2432, 0)


def test_layers_may_have_groups_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footprint, "computes_on_cpu", lambda: True)
    quantization = {"bits": 4, "group_size": 64, "layer": {"group_size": 32, "bits": 8}}
    assert read(write(tmp_path / "model", PACKED, quantization=quantization, **ATTENTION)).weights == 4 * (64 * 32 + 64)


@pytest.mark.parametrize(
    ("config", "layers", "fixed"),
    [
        ({}, ((384, None),), 0),
        ({"head_dim": 16}, ((768, None),), 0),
        ({"sliding_window": 512}, ((384, None),), 0),  # none of its layers slides
        ({"sliding_window": 512, "sliding_window_pattern": 3}, ((256, 512), (128, None)), 0),
        (
            {"sliding_window": 128, "layer_types": ["full_attention"] * 2 + ["sliding_attention"] * 4},
            ((128, None), (256, 128)),
            0,
        ),
        (
            {
                "full_attention_interval": 3, "linear_num_value_heads": 4, "linear_key_head_dim": 8,
                "linear_value_head_dim": 8,
            },
            ((128, None),),
            4 * 4 * 4 * 8 * 12,
        ),
        ({"kv_lora_rank": 20, "qk_rope_head_dim": 4}, ((288, None),), 0),
        ({"text_config": {"num_hidden_layers": 3}}, ((192, None),), 0),
    ],
)  # fmt: skip
def test_states_of_all_kinds_of_attention(
    tmp_path: Path, config: dict[str, Any], layers: tuple[tuple[int, int | None], ...], fixed: int
) -> None:
    """Full, sliding, latent and linear; in 16 bits."""
    state = read(write(tmp_path / "model", {"w": ("BF16", [4], 8)}, **{**ATTENTION, **config}), memory=1).state
    assert (state.layers, state.fixed) == (layers, fixed)


def test_a_state_grows_in_steps_and_within_its_window() -> None:
    state = StateCost(layers=((10, None), (100, 512)), fixed=7)
    assert [state.of(tokens) for tokens in (1, 256, 257, 5000)] == [28167, 28167, 56327, 102407]
    assert state.of(257, sequences=3) == 3 * 56327
    assert state.of(257, sequences=0) == 0


def test_what_there_is_room_for(tmp_path: Path) -> None:
    """The longest sequence; none if the model has room for less than is worth loading it."""
    found = read(write_tiny_llama(tmp_path / "tiny"))
    assert found.most_tokens(GIB, context=4096) == 4096
    assert found.most_tokens(found.needs(1024), context=4096) == 1024
    assert found.most_tokens(found.needs(1024) - 1, context=4096) == 768
    assert found.most_tokens(found.needs(512) - 1, context=4096) == 0
    assert found.most_tokens(found.needs(256), context=200) == 200
    assert found.needs(1024, sequences=2) - found.needs(1024) == STATE_BYTES_PER_TOKEN * 1024


def test_files_that_say_nothing_cost_nothing(tmp_path: Path) -> None:
    """Whoever loads them says what is wrong."""
    (tmp_path / "config.json").write_text("[]")
    (tmp_path / "model.safetensors").write_bytes(b"no")
    assert read(tmp_path).needs(1000) == 0


def test_cached_prompts_have_the_memory_of_one_full_context_within_limits() -> None:
    cost = StateCost(layers=((46_080, None),))
    assert bytes_for_prompts(cost, context=8192) == 8192 * 46_080
    assert bytes_for_prompts(cost, context=512) == 256 << 20
    assert bytes_for_prompts(cost, context=131_072) == 2 << 30
