"""Models with random weights, one for each kind of attention state. They say nothing, but what they say depends on
every token before, and is the same each time.
"""

import json
from pathlib import Path
from typing import Any

from inference.models.registry import ModelEntry

SIZE = 300
"""Tokens in the vocabulary."""
STOP = 299
WINDOW = 16
"""How many tokens a layer with a sliding window sees."""

_COMMON: dict[str, Any] = {"hidden_size": 32, "vocab_size": SIZE, "max_position_embeddings": 2048, "eos_token_id": STOP}
_ATTENTION: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-5}
CONFIGS: dict[str, dict[str, Any]] = {
    "full": _COMMON | _ATTENTION | {
        "model_type": "llama", "num_hidden_layers": 2, "intermediate_size": 64, "tie_word_embeddings": False,
    },
    "window": _COMMON | _ATTENTION | {
        "model_type": "gemma3_text", "num_hidden_layers": 4, "intermediate_size": 64, "head_dim": 8,
        "query_pre_attn_scalar": 8, "sliding_window": WINDOW, "sliding_window_pattern": 2,
    },
    "recurrent": _COMMON | {
        "model_type": "mamba2", "num_hidden_layers": 2, "num_heads": 4, "head_dim": 8, "intermediate_size": 32,
        "state_size": 8, "layer_norm_epsilon": 1e-5, "conv_kernel": 4, "n_groups": 1, "use_bias": False,
        "use_conv_bias": True, "tie_word_embeddings": False, "time_step_limit": [0.0, 10.0], "time_step_rank": 2,
    },
    "hybrid": _COMMON | _ATTENTION | {
        "model_type": "falcon_h1", "num_hidden_layers": 2, "intermediate_size": 64, "head_dim": 8, "mamba_d_head": 8,
        "mamba_d_ssm": 32, "mamba_d_state": 8, "mamba_n_heads": 4, "tie_word_embeddings": False,
    },
    "recurrent window": _COMMON | _ATTENTION | {
        "model_type": "recurrent_gemma", "num_hidden_layers": 3, "intermediate_size": 64, "attention_bias": False,
        "conv1d_width": 4, "logits_soft_cap": 30.0, "rope_theta": 10000.0, "attention_window_size": WINDOW,
        "num_key_value_heads": 1, "block_types": ["recurrent", "recurrent", "attention"],
    },
}  # fmt: skip


def tiny_model(kind: str, **changes: Any) -> Any:
    """A model of a kind in CONFIGS, perhaps changed. Its logits are as far apart as a trained model's."""
    import mlx.core as mx
    from mlx.utils import tree_flatten
    from mlx_lm.utils import _get_classes

    mx.random.seed(4)
    config = CONFIGS[kind] | changes
    model_class, arguments = _get_classes(config)
    model = model_class(arguments.from_dict(config))
    weights = dict(tree_flatten(model.parameters()))
    for name in ("lm_head.weight", "model.embed_tokens.weight"):
        if name in weights:
            weights[name] = weights[name] * 12
            break
    model.load_weights(list(weights.items()))
    mx.eval(model.parameters())
    return model


def write_tiny_model(directory: Path, kind: str) -> ModelEntry:
    """The model of a kind as files that an engine loads."""
    import mlx.core as mx
    from mlx.utils import tree_flatten

    directory.mkdir(parents=True)
    (directory / "config.json").write_text(json.dumps(CONFIGS[kind]))
    weights: Any = tree_flatten(tiny_model(kind).parameters())
    mx.save_safetensors(str(directory / "model.safetensors"), dict(weights))
    vocabulary = {chr(0x100 + number): number for number in range(SIZE)}
    tokenizer = {"model": {"type": "BPE", "vocab": vocabulary, "merges": []}, "decoder": {"type": "ByteLevel"}}
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer))
    return ModelEntry(
        name=kind.replace(" ", "-"),
        source="test",
        digest=f"sha256:{kind}",
        context_length=2048,
        vocab_size=SIZE,
        temperature=1.0,
        top_p=1.0,
        size_bytes=0,
        weights="fp32",
        added_at="2026-01-01T00:00:00+00:00",
        path=directory,
    )
