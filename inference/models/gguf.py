"""Converts a GGUF file into a directory that mlx-lm loads: weights, config, tokenizer, chat template.

Guarantees that the converted model computes what the file's tensors say: quantised tensors are kept as they are or
dequantised exactly, and the row order that GGUF gives q and k for the llama architecture is undone.
"""

import json
import re
from pathlib import Path
from typing import Any, Literal

from inference.models.gguf_header import GgufHeader, read_header
from inference.models.gguf_tokenizer import check_tokenizer, write_tokenizer
from inference.types import ModelError, Progress

WeightForm = Literal["fp32", "kept"]

_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_BLOCK = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_GROUP = 32
_BITS = {"Q4_0": 4, "Q4_1": 4, "Q8_0": 8}


def convert_gguf(source: Path, directory: Path, *, form: WeightForm, progress: Progress) -> None:
    """Write the model of `source` into the existing, empty `directory`. Raises ModelError.

    `form` is "fp32" (dequantised: fastest on a CPU) or "kept" (quantised tensors stay quantised: Metal and CUDA).
    """
    header = read_header(source)
    _check(source, header)
    import mlx.core as mx

    progress("Reading the GGUF file", 0.0)
    try:
        loaded: Any = mx.load(str(source), return_metadata=True)
    except RuntimeError as error:
        raise ModelError(f"MLX can't read {source.name}: {error}") from None
    arrays, metadata = loaded
    check_tokenizer(metadata)
    progress("Reading the GGUF file", 1.0)
    heads = {"attn_q": _number(header, "attention.head_count"), "attn_k": _key_heads(header)}
    bits = {name: _BITS[kind] for name, (kind, _) in header.tensors.items() if kind in _BITS}
    weights: dict[str, Any] = {}
    quantised: dict[str, int] = {}
    names = list(header.tensors)
    for done, name in enumerate(names):
        stem = name.removesuffix(".weight")
        parts = {
            part: arrays[f"{stem}.{part}"] for part in ("weight", "scales", "biases") if f"{stem}.{part}" in arrays
        }
        for part, array in parts.items():
            parts[part] = _unpermuted(array, heads.get(stem.rpartition(".")[2]))
        target = _target(name)
        if len(parts) == 3 and form == "fp32":
            scales, biases = parts["scales"].astype(mx.float32), parts["biases"].astype(mx.float32)
            whole = mx.dequantize(parts["weight"], scales, biases, group_size=_GROUP, bits=bits[name])
            weights[f"{target}.weight"] = whole
        elif len(parts) == 3:
            quantised[str(target)] = bits[name]
            weights |= {f"{target}.{part}": array for part, array in parts.items()}
        else:
            weights[f"{target}.weight"] = parts["weight"].astype(mx.float32 if form == "fp32" else mx.float16)
        mx.eval(list(weights.values())[-3:])
        progress("Converting the weights", (done + 1) / len(names))
    progress("Writing the model", 0.0)
    mx.save_safetensors(str(directory / "model.safetensors"), weights, metadata={"format": "mlx"})
    config = _config(header, tied="output.weight" not in header.tensors, form=form, quantised=quantised)
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    write_tokenizer(metadata, directory)
    progress("Writing the model", 1.0)


def _check(source: Path, header: GgufHeader) -> None:
    architecture = header.scalars.get("general.architecture")
    if architecture != "llama":
        raise ModelError(
            f"{source.name} has the architecture {architecture!r}; only 'llama' can be converted from GGUF: "
            "take the model in MLX or safetensors form."
        )
    if "rope_freqs.weight" in header.tensors:
        raise ModelError(
            f"{source.name} scales its rotary frequencies, which can't be converted from GGUF: "
            "take the model in MLX or safetensors form."
        )
    unknown = [name for name in header.tensors if _target(name) is None]
    if unknown:
        raise ModelError(f"{source.name} holds a tensor {unknown[0]!r} that a llama model doesn't have.")


def _target(name: str) -> str | None:
    """mlx-lm's name for a GGUF tensor, without the last part; None for an unknown one."""
    if match := re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", name):
        part = _BLOCK.get(match[2])
        return part and f"model.layers.{match[1]}.{part}"
    return _TOP.get(name.removesuffix(".weight"))


def _unpermuted(array: Any, heads: int | None) -> Any:
    """Rows in the order of the rotary embedding's two halves, as the original checkpoint has them."""
    if heads is None:
        return array
    rows = array.shape[0]
    return array.reshape(heads, rows // heads // 2, 2, -1).swapaxes(1, 2).reshape(array.shape)


def _config(header: GgufHeader, *, tied: bool, form: WeightForm, quantised: dict[str, int]) -> dict[str, Any]:
    heads = _number(header, "attention.head_count")
    config: dict[str, Any] = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": _number(header, "embedding_length"),
        "num_hidden_layers": _number(header, "block_count"),
        "intermediate_size": _number(header, "feed_forward_length"),
        "num_attention_heads": heads,
        "num_key_value_heads": _key_heads(header),
        "head_dim": header.scalars.get("llama.attention.key_length", _number(header, "embedding_length") // heads),
        "rms_norm_eps": header.scalars["llama.attention.layer_norm_rms_epsilon"],
        "rope_theta": header.scalars.get("llama.rope.freq_base", 10000.0),
        "max_position_embeddings": _number(header, "context_length"),
        "vocab_size": header.tensors["token_embd.weight"][1][1],
        "tie_word_embeddings": tied,
        "torch_dtype": "float32" if form == "fp32" else "float16",
    }
    if quantised:
        usual = max(set(quantised.values()), key=list(quantised.values()).count)
        other = {name: {"group_size": _GROUP, "bits": bits} for name, bits in quantised.items() if bits != usual}
        config["quantization"] = {"group_size": _GROUP, "bits": usual, **other}
    return config


def _number(header: GgufHeader, key: str) -> int:
    value = header.scalars.get(f"llama.{key}")
    if not isinstance(value, int):
        raise ModelError(f"The GGUF file doesn't say its {key.replace('_', ' ').replace('.', ' ')}.")
    return value


def _key_heads(header: GgufHeader) -> int:
    value = header.scalars.get("llama.attention.head_count_kv")
    return value if isinstance(value, int) else _number(header, "attention.head_count")
