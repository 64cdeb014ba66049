"""A random llama of 2 layers and width 64 whose step takes less than a millisecond: all else is overhead.

It stands for a fast device: on one, a step is short and what Python does beside it is felt. Every answer has exactly
as many tokens as were asked for, and every token of it is a space and three letters, so that a client counts tokens by
counting characters. A prompt of n of these words has n tokens and those of the template.
"""

import itertools
import json
import random
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from inference import ModelEntry, Registry
from inference.models.downloads import add_directory
from tests.inference.tiny_llama import ENDS_TURN, SPECIAL, TEMPLATE, byte_level_tokenizer, random_llama_weights

NAME = "tiny"
CHARACTERS_PER_TOKEN = 4
CONTEXT = 32_768
WIDTH, LAYERS, HEADS, INNER = 64, 2, 2, 64

_FIRST, _VOWELS, _LAST = "bdfgklmnprst", "aeiou", "klmnst"
_SPACE = "Ġ"
"""How byte-level BPE writes a space."""


def words(count: int, *, seed: object) -> str:
    """A text of so many words, each of them one token; the same for the same seed."""
    choice = random.Random(f"words/{seed}").choice
    return "".join(f" {choice(_FIRST)}{choice(_VOWELS)}{choice(_LAST)}" for _ in range(count))


def install_tiny_model(registry: Registry, work: Path) -> ModelEntry:
    """Make the model below ``work`` and install it under ``NAME``."""
    directory = work / "tiny-model"
    write_tiny_model(directory)
    return add_directory(registry, directory, name=NAME)


def write_tiny_model(directory: Path) -> None:
    """Write an MLX directory; the same bytes each time."""
    directory.mkdir(parents=True)
    tokenizer = _tokenizer()
    vocabulary = tokenizer["model"]["vocab"]
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "intermediate_size": INNER,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS // 2,
        "head_dim": WIDTH // HEADS,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10_000.0,
        "max_position_embeddings": CONTEXT,
        "vocab_size": len(vocabulary),
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "eos_token_id": ENDS_TURN,
    }
    _write(directory / "config.json", config)
    _write(directory / "generation_config.json", {"eos_token_id": ENDS_TURN, "temperature": 1.0})
    _write(directory / "tokenizer.json", tokenizer)
    _write(
        directory / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "chat_template": TEMPLATE,
            "clean_up_tokenization_spaces": False,
            "eos_token": SPECIAL[ENDS_TURN],
            "unk_token": SPECIAL[0],
        },
    )
    weights = random_llama_weights(
        vocabulary=len(vocabulary),
        chosen=slice(len(vocabulary) - len(_words()), None),
        width=WIDTH,
        inner=INNER,
        key_width=WIDTH // 2,
        layers=LAYERS,
        sharpness=4.0,
        seed=12,
    )
    save_file(weights, directory / "model.safetensors", metadata={"format": "mlx"})


def _words() -> list[str]:
    return [f"{_SPACE}{first}{rest}" for first, rest in itertools.product(_FIRST, _rests())]


def _rests() -> list[str]:
    return [vowel + last for vowel, last in itertools.product(_VOWELS, _LAST)]


def _tokenizer() -> dict[str, Any]:
    """Byte-level BPE whose longest tokens are the words."""
    starts = [_SPACE + first for first in _FIRST]
    merges = [[_SPACE, first] for first in _FIRST] + [[*rest] for rest in _rests()]
    merges += [[_SPACE + first, rest] for first, rest in itertools.product(_FIRST, _rests())]
    return byte_level_tokenizer([*starts, *_rests(), *_words()], merges)


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
