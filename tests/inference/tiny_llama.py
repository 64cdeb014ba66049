"""A llama of two layers with random weights that can be loaded and run: it says nothing, in no time."""

import json
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
    (directory / "tokenizer.json").write_text(json.dumps(_tokenizer()))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": TEMPLATE,
        "eos_token": SPECIAL[ENDS_TURN],
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))
    save_file(_weights(vocabulary, seed), directory / "model.safetensors", metadata={"format": "mlx"})
    return directory


def _weights(vocabulary: int, seed: int) -> dict[str, Any]:
    import numpy as np

    rng = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> Any:
        return (rng.standard_normal((rows, columns)) / columns**0.5).astype(np.float32)

    first, last = len(SPECIAL), len(SPECIAL) + 256
    head = matrix(vocabulary, WIDTH)
    # One dimension of the last hidden state is always 1: by it, all but bytes is impossible.
    embedding = matrix(vocabulary, WIDTH)
    embedding[:, 0] = 1.0
    head[:, 0] = -1000.0
    head[first:last, 0] = 0.0
    weights = {
        "model.embed_tokens.weight": embedding,
        "lm_head.weight": head,
        "model.norm.weight": np.ones(WIDTH, np.float32),
    }
    for layer in range(LAYERS):
        output, down = matrix(WIDTH, WIDTH), matrix(WIDTH, 2 * WIDTH)
        output[0] = down[0] = 0.0
        parts = {
            "input_layernorm": np.ones(WIDTH, np.float32),
            "post_attention_layernorm": np.ones(WIDTH, np.float32),
            "self_attn.q_proj": matrix(WIDTH, WIDTH),
            "self_attn.k_proj": matrix(WIDTH, WIDTH),
            "self_attn.v_proj": matrix(WIDTH, WIDTH),
            "self_attn.o_proj": output,
            "mlp.gate_proj": matrix(2 * WIDTH, WIDTH),
            "mlp.up_proj": matrix(2 * WIDTH, WIDTH),
            "mlp.down_proj": down,
        }
        weights |= {f"model.layers.{layer}.{name}.weight": value for name, value in parts.items()}
    return weights


def _tokenizer() -> dict[str, Any]:
    visible = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    hidden = [byte for byte in range(256) if byte not in visible]
    letters = [chr(byte) for byte in visible] + [chr(256 + place) for place in range(len(hidden))]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "added_tokens": [{"id": number, "content": text, **flags} for number, text in enumerate(SPECIAL)],
        "pre_tokenizer": level,
        "decoder": level,
        "model": {
            "type": "BPE",
            "vocab": {text: number for number, text in enumerate([*SPECIAL, *letters])},
            "merges": [],
        },
    }
