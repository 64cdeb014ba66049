"""A directory that can't be served is refused in one sentence, before anything is loaded."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from inference import ModelError, verify_loadable
from tests.inference.tiny import CONFIG, write_model


def without(name: str) -> Callable[[Path], object]:
    return lambda model: (model / name).unlink()


def text(name: str, value: str) -> Callable[[Path], object]:
    return lambda model: (model / name).write_text(value)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (without("config.json"), "There is no config.json in"),
        (text("config.json", "{"), "The model's config.json is damaged."),
        (text("config.json", "[]"), "The model's config.json is damaged."),
        (text("config.json", "{}"), "doesn't say its model_type"),
        (text("config.json", json.dumps(CONFIG | {"model_type": "../llama"})), "doesn't know the model type"),
        (text("config.json", json.dumps(CONFIG | {"model_type": "gpt9"})), "doesn't know the model type 'gpt9'."),
        (text("config.json", json.dumps(CONFIG | {"model_file": "x.py"})), "code of its own"),
        (text("config.json", json.dumps(CONFIG | {"vocab_size": None})), "vocab_size"),
        (text("config.json", json.dumps(CONFIG | {"max_position_embeddings": None})), "context length"),
        (without("model.safetensors"), "There are no weights in"),
        (text("model.safetensors", "no"), "weights file model.safetensors is damaged."),
        (text("model.safetensors.index.json", '{"weight_map": {"w": "m-2.safetensors"}}'), "m-2.safetensors is"),
        (without("tokenizer.json"), "There is no tokenizer in"),
        (text("tokenizer.json", "{"), "tokenizer.json is damaged"),
        (text("tokenizer_config.json", "{}"), "has no chat template"),
    ],
)  # fmt: skip
def test_refusals(tmp_path: Path, spoil: Callable[[Path], object], sentence: str) -> None:
    model = write_model(tmp_path / "model")
    verify_loadable(model)
    spoil(model)
    with pytest.raises(ModelError) as refused:
        verify_loadable(model)
    assert sentence in str(refused.value)
    assert str(refused.value).endswith(".") or str(refused.value).endswith("needed.")
    assert "\n" not in str(refused.value)


def test_weights_that_were_cut_short_are_refused(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model")
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(ModelError, match="cut short"):
        verify_loadable(model)


def test_a_model_type_that_mlx_lm_maps_to_another_is_known(tmp_path: Path) -> None:
    assert verify_loadable(write_model(tmp_path / "model", model_type="mistral")).weights == "fp16"


def test_there_is_no_such_directory(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="There is no directory"):
        verify_loadable(tmp_path / "nowhere")
