"""The memory that a model will need, estimated from its files. The engine measures that of a loaded model.

Standard library only: commands and workers ask before anything is loaded.
"""

import json
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.memory.machine import computes_on_cpu
from inference.memory.state_cost import StateCost, rounded, same_layers, vector_bytes

FP32_SHARE = 2 / 3
"""Limit for the fp32 weights of one model on a CPU, as a share of the memory for models."""
LEAST_TOKENS = 512
"""A model is not loaded without memory for a sequence of so many tokens."""
_FP32 = 4
_LOGITS_COPIES = 8
"""The number of arrays of the size of the logits that a sampled token needs at the same time."""
_BURST = 3
"""Most slices of prompts that are read at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """The bytes of memory that a model needs."""

    weights: int
    """The weights of the loaded model."""
    loading: int
    """Most memory during loading, including the weights."""
    state: StateCost
    step: int
    """The intermediate values of one step that don't depend on the longest sequence."""
    step_per_token: int
    """The other intermediate values, per token of the longest sequence."""
    as_fp32: bool
    """Whether loading converts the weights to fp32, the only form that is fast on a CPU."""

    def needs(self, tokens: int, *, sequences: int = 1) -> int:
        """Bytes for so many sequences, of which the longest has so many tokens."""
        running = self.weights + self.step + self.step_per_token * rounded(tokens)
        return max(self.loading, running + self.state.of(tokens, sequences=sequences))

    def most_tokens(self, memory: int, *, context: int) -> int:
        """The longest sequence for which ``memory`` is enough, at most ``context``; 0 if the model doesn't fit."""
        if self.needs(min(context, LEAST_TOKENS)) > memory:
            return 0
        fewest, most = 0, context
        while fewest < most:
            middle = (fewest + most + 1) // 2
            fewest, most = (middle, most) if self.needs(middle) <= memory else (fewest, middle - 1)
        return fewest


def read_footprint(
    directory: Path, *, memory: int, batch_size: int, prefill_step: int, kv_bits: int | None = None
) -> Footprint:
    """The footprint of an MLX directory on this machine, which has ``memory`` bytes for models."""
    config = _read_json(directory / "config.json")
    config |= config["text_config"] if isinstance(config.get("text_config"), dict) else {}
    stored, parameters = _count_weights(directory, config)
    on_cpu = computes_on_cpu()
    is_fp32 = stored >= _FP32 * parameters
    as_fp32 = on_cpu and not is_fp32 and _FP32 * parameters <= FP32_SHARE * memory
    weights = _FP32 * parameters if as_fp32 else stored
    width = _number(config, "hidden_size", "d_model", "n_embd")
    inner = _number(config, "intermediate_size", "ffn_hidden_size", "n_inner") or 4 * width
    heads = _number(config, "num_attention_heads", "n_heads", "n_head")
    burst = _BURST * prefill_step
    value = _FP32 if on_cpu else 2
    return Footprint(
        weights=weights,
        loading=weights if weights == stored else weights + stored,
        state=_state_cost(config, value=_FP32 if as_fp32 or is_fp32 else 2, bits=kv_bits),
        step=value * burst * (8 * width + 4 * inner)
        + _LOGITS_COPIES * _FP32 * batch_size * _number(config, "vocab_size"),
        # A GPU's kernels have no matrix of attention.
        step_per_token=2 * _FP32 * heads * prefill_step if on_cpu else 0,
        as_fp32=as_fp32,
    )


def _state_cost(config: Mapping[str, Any], *, value: int, bits: int | None) -> StateCost:
    """By the usual names in config.json. `value`: bytes of a number in the state, `bits` those of one in keys and
    values that are quantised.
    """
    layers = _number(config, "num_hidden_layers", "n_layers", "n_layer", "num_layers")
    heads = _number(config, "num_attention_heads", "n_heads", "n_head")
    width = _number(config, "head_dim") or _number(config, "hidden_size", "d_model", "n_embd") // max(1, heads)
    widths = [width, width] * (_number(config, "num_key_value_heads", "n_kv_heads") or heads)
    if latent := _number(config, "kv_lora_rank"):
        widths = [latent, _number(config, "qk_rope_head_dim")]
    per_token = sum(vector_bytes(width, value=value, bits=bits) for width in widths)
    window = _number(config, "sliding_window") or None
    kinds = list(_kinds(config, layers))
    sizes = [(per_token, window if kind == "sliding" else None) for kind in kinds if kind != "recurrent"]
    if sizes and bits is not None:
        sizes.append((value * sum(widths), None))  # restored for one layer at a time
    return StateCost(
        layers=same_layers(sizes),
        fixed=kinds.count("recurrent") * _recurrent_bytes(config),
    )


def _kinds(config: Mapping[str, Any], layers: int) -> Iterator[str]:
    """The kind of each layer: full, sliding or recurrent."""
    named = config.get("layer_types")
    pattern = _number(config, "sliding_window_pattern", "_sliding_window_pattern")
    interval = _number(config, "full_attention_interval")
    for number in range(layers):
        if isinstance(named, list) and number < len(named):
            name = str(named[number])
            yield "full" if name == "full_attention" else "sliding" if "sliding" in name else "recurrent"
        elif pattern:
            yield "full" if (number + 1) % pattern == 0 else "sliding"
        elif interval:
            yield "full" if (number + 1) % interval == 0 else "recurrent"
        else:
            yield "full"


def _recurrent_bytes(config: Mapping[str, Any]) -> int:
    """Bytes of the state of a layer with linear attention."""
    heads = _number(config, "linear_num_value_heads", "linear_num_key_heads")
    return _FP32 * heads * _number(config, "linear_key_head_dim") * (_number(config, "linear_value_head_dim") + 4)


def _count_weights(directory: Path, config: Mapping[str, Any]) -> tuple[int, int]:
    """The bytes of the stored weights, and the number of parameters."""
    tensors: dict[str, dict[str, Any]] = {}
    for file in sorted(directory.glob("model*.safetensors")):
        tensors |= _tensors(file)
    quantization = config.get("quantization") or config.get("quantization_config")
    group = _number(quantization, "group_size") if isinstance(quantization, dict) else 0
    stored = parameters = 0
    for name, tensor in tensors.items():
        start, end = tensor["data_offsets"]
        stored += end - start
        layer = name.rpartition(".")[0]
        is_packed = f"{layer}.scales" in tensors
        if is_packed and name.endswith(".scales"):
            own = quantization.get(layer) if isinstance(quantization, dict) else None
            size = _number(own, "group_size") if isinstance(own, dict) else 0
            parameters += math.prod(tensor["shape"]) * (size or group or 64)
        elif not (is_packed and name.endswith((".weight", ".biases"))):
            parameters += math.prod(tensor["shape"])
    return stored, parameters


def _tensors(file: Path) -> dict[str, dict[str, Any]]:
    try:
        with file.open("rb") as opened:
            (length,) = struct.unpack("<Q", opened.read(8))
            header = json.loads(opened.read(length))
    except (OSError, ValueError, struct.error):  # loading it fails with the reason
        return {}
    return {name: tensor for name, tensor in header.items() if name != "__metadata__"}


def _number(values: Mapping[str, Any], *names: str) -> int:
    """The first of these values that is a whole number; 0 if there is none."""
    return next((value for name in names if isinstance(value := values.get(name), int)), 0)


def _read_json(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
