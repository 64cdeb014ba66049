"""A llama of two layers with random weights that can be loaded and run: it says nothing, in no time."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inference import ModelEntry, Registry, add_directory

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
ENDS_TURN = 2
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
WIDTH, LAYERS, HEADS = 32, 2, 4
STATE_BYTES_PER_TOKEN = 2 * LAYERS * 4 * WIDTH
"""Keys and values in fp32 of all layers; each head has its own."""


def install_tiny_llama(
    registry: Registry, name: str, *, work: Path, vocabulary: int = 300, context: int = 4096, seed: int = 1
) -> ModelEntry:
    """Make it below `work` and install it. Its weights have about 256 bytes per token of the vocabulary."""
    return add_directory(
        registry, write_tiny_llama(work / name, vocabulary=vocabulary, context=context, seed=seed), name=name
    )


def write_tiny_llama(directory: Path, *, vocabulary: int = 300, context: int = 4096, seed: int = 1) -> Path:
    """Write an MLX directory. Its tokens are bytes; those of the vocabulary beyond are never chosen."""
    from safetensors.numpy import save_file

    directory.mkdir(parents=True)
    config = {
        "model_type": "llama",
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "intermediate_size": 2 * WIDTH,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "rms_norm_eps": 1e-5,
        "max_position_embeddings": context,
        "vocab_size": vocabulary,
        "tie_word_embeddings": False,
        "eos_token_id": ENDS_TURN,
    }
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "tokenizer.json").write_text(json.dumps(byte_level_tokenizer()))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": TEMPLATE,
        "eos_token": SPECIAL[ENDS_TURN],
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    first = len(SPECIAL)
    weights = random_llama_weights(
        vocabulary=vocabulary,
        chosen=slice(first, first + 256),
        width=WIDTH,
        inner=2 * WIDTH,
        key_width=WIDTH,
        layers=LAYERS,
        sharpness=1.0,
        seed=seed,
    )
    save_file(weights, directory / "model.safetensors", metadata={"format": "mlx"})
    return directory


def random_llama_weights(
    *, vocabulary: int, chosen: slice, width: int, inner: int, key_width: int, layers: int, sharpness: float, seed: int
) -> dict[str, Any]:
    """Random weights of a llama that chooses only tokens of the slice, however they are sampled.

    One dimension of the hidden state is always 1 before the last norm: by it all other tokens are impossible.
    `sharpness` multiplies the logits of the others.
    """
    import numpy as np

    rng = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> Any:
        return (rng.standard_normal((rows, columns)) / columns**0.5).astype(np.float32)

    embedding, head = matrix(vocabulary, width), sharpness * matrix(vocabulary, width)
    embedding[:, 0] = 1.0
    head[:, 0] = -1000.0
    head[chosen, 0] = 0.0
    weights = {
        "model.embed_tokens.weight": embedding,
        "lm_head.weight": head,
        "model.norm.weight": np.ones(width, np.float32),
    }
    for layer in range(layers):
        output, down = matrix(width, width), matrix(width, inner)
        output[0] = down[0] = 0.0  # they add nothing to that dimension
        parts = {
            "input_layernorm": np.ones(width, np.float32),
            "post_attention_layernorm": np.ones(width, np.float32),
            "self_attn.q_proj": matrix(width, width),
            "self_attn.k_proj": matrix(key_width, width),
            "self_attn.v_proj": matrix(key_width, width),
            "self_attn.o_proj": output,
            "mlp.gate_proj": matrix(inner, width),
            "mlp.up_proj": matrix(inner, width),
            "mlp.down_proj": down,
        }
        weights |= {f"model.layers.{layer}.{name}.weight": value for name, value in parts.items()}
    return weights


def byte_level_tokenizer(further: Sequence[str] = (), merges: Sequence[Sequence[str]] = ()) -> dict[str, Any]:
    """The special tokens, the 256 bytes as GPT-2 writes them, and further tokens with the merges that make them."""
    visible = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    hidden = [byte for byte in range(256) if byte not in visible]
    letters = [chr(byte) for byte in visible] + [chr(256 + place) for place in range(len(hidden))]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokens = [*SPECIAL, *letters, *further]
    return {
        "version": "1.0",
        "added_tokens": [{"id": number, "content": text, **flags} for number, text in enumerate(SPECIAL)],
        "pre_tokenizer": level,
        "decoder": level,
        "model": {"type": "BPE", "vocab": {text: number for number, text in enumerate(tokens)}, "merges": merges},
    }
