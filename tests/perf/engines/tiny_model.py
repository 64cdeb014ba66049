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

import numpy as np
from safetensors.numpy import save_file

from inference import ModelEntry, Registry
from inference.models.downloads import add_directory

NAME = "tiny"
CHARACTERS_PER_TOKEN = 4
CONTEXT = 32_768
WIDTH, LAYERS, HEADS, INNER = 64, 2, 2, 64

_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_ENDS_TURN = 2
_FIRST, _VOWELS, _LAST = "bdfgklmnprst", "aeiou", "klmnst"
_SPACE = "Ġ"
"""How byte-level BPE writes a space."""
_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


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
        "eos_token_id": _ENDS_TURN,
    }
    _write(directory / "config.json", config)
    _write(directory / "generation_config.json", {"eos_token_id": _ENDS_TURN, "temperature": 1.0})
    _write(directory / "tokenizer.json", tokenizer)
    _write(
        directory / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "chat_template": _TEMPLATE,
            "clean_up_tokenization_spaces": False,
            "eos_token": _SPECIAL[_ENDS_TURN],
            "unk_token": _SPECIAL[0],
        },
    )
    weights = _weights(len(vocabulary), first_word=len(vocabulary) - len(_words()))
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
    tokens = [*_SPECIAL, *_byte_characters(), *starts, *_rests(), *_words()]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": number,
                "content": text,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for number, text in enumerate(_SPECIAL)
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {text: number for number, text in enumerate(tokens)},
            "merges": merges,
        },
    }


def _byte_characters() -> list[str]:
    """The visible characters that stand for the 256 bytes, as GPT-2 defined them."""
    visible = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return [chr(byte) for byte in visible] + [chr(256 + place) for place in range(len(hidden))]


def _weights(vocabulary: int, *, first_word: int) -> dict[str, Any]:
    """Random weights, but for one dimension of the hidden state, which is always 1 before the last norm: by it every
    token that is not a word is made impossible, however a token is sampled.
    """
    rng = np.random.default_rng(12)

    def matrix(rows: int, columns: int) -> Any:
        return (rng.standard_normal((rows, columns)) / columns**0.5).astype(np.float32)

    weights = {"model.norm.weight": np.ones(WIDTH, np.float32)}
    embedding = rng.standard_normal((vocabulary, WIDTH)).astype(np.float32)
    embedding[:, 0] = 1.0
    head = 4.0 * matrix(vocabulary, WIDTH)
    head[:, 0] = 0.0
    head[:first_word] = 0.0
    head[:first_word, 0] = -1000.0
    weights |= {"model.embed_tokens.weight": embedding, "lm_head.weight": head}
    pairs = WIDTH // 2
    for layer in range(LAYERS):
        output, down = matrix(WIDTH, WIDTH), matrix(WIDTH, INNER)
        output[0], down[0] = 0.0, 0.0  # they add nothing to that dimension
        weights |= {
            f"model.layers.{layer}.{name}.weight": value
            for name, value in {
                "input_layernorm": np.ones(WIDTH, np.float32),
                "post_attention_layernorm": np.ones(WIDTH, np.float32),
                "self_attn.q_proj": matrix(WIDTH, WIDTH),
                "self_attn.k_proj": matrix(pairs, WIDTH),
                "self_attn.v_proj": matrix(pairs, WIDTH),
                "self_attn.o_proj": output,
                "mlp.gate_proj": matrix(INNER, WIDTH),
                "mlp.up_proj": matrix(INNER, WIDTH),
                "mlp.down_proj": down,
            }.items()
        }
    return weights


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
