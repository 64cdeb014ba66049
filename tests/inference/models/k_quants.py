"""Writes the default model as a Q4_K_M file, as llama.cpp does: the package `gguf` reads K-quants and writes none.

The block layouts are those of llama.cpp's ggml-quants, and which tensor has which type is its choice for Q4_K_M: rows
that no block of 256 divides get the types that llama.cpp falls back to. The quantiser is the plainest there is.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, LlamaFileType, TokenType
from gguf.quants import quantize

Array = Any
Q4_K, Q5_0, Q6_K, Q8_0 = (GGMLQuantizationType[name] for name in ("Q4_K", "Q5_0", "Q6_K", "Q8_0"))
BLOCK = 256
NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}  # fmt: skip


def quantize_q4_k(values: Array) -> Array:
    """Rows of floats as rows of bytes: 8 groups of 32 per block, each with a scale and a minimum of 6 bits."""
    groups = values.astype(np.float32).reshape(-1, 8, 32)
    low = np.minimum(groups.min(axis=-1), 0)
    scales, minima = (groups.max(axis=-1) - low) / 15, -low
    d, scale_codes = _codes(scales, 63)
    d_min, min_codes = _codes(minima, 63)
    steps = _nonzero(d.astype(np.float32) * scale_codes)[..., None]
    offsets = (d_min.astype(np.float32) * min_codes)[..., None]
    q = np.rint((groups + offsets) / steps).clip(0, 15).astype(np.uint8).reshape(-1, 4, 2, 32)
    sc, mn = scale_codes.astype(np.uint8), min_codes.astype(np.uint8)
    packed = [
        sc[:, :4] | (sc[:, 4:] >> 4) << 6,
        mn[:, :4] | (mn[:, 4:] >> 4) << 6,
        (sc[:, 4:] & 0x0F) | (mn[:, 4:] & 0x0F) << 4,
    ]
    codes = (q[:, :, 0] | q[:, :, 1] << 4).reshape(-1, 128)
    blocks = np.concatenate([d.view(np.uint8), d_min.view(np.uint8), *packed, codes], axis=-1)
    return blocks.reshape(values.shape[0], -1)


def quantize_q6_k(values: Array) -> Array:
    """Rows of floats as rows of bytes: 16 groups of 16 per block, each with a scale of 8 bits."""
    groups = values.astype(np.float32).reshape(-1, 16, 16)
    d, scale_codes = _codes(np.abs(groups).max(axis=-1) / 31, 127)
    steps = _nonzero(d.astype(np.float32) * scale_codes)[..., None]
    q = (np.rint(groups / steps).clip(-32, 31) + 32).astype(np.uint8).reshape(-1, 2, 2, 64)
    low = ((q[:, :, 0] & 0x0F) | (q[:, :, 1] & 0x0F) << 4).reshape(-1, 128)
    high = (q >> 4).reshape(-1, 2, 4, 32)
    high = (high[:, :, 0] | high[:, :, 1] << 2 | high[:, :, 2] << 4 | high[:, :, 3] << 6).reshape(-1, 64)
    scales = scale_codes.astype(np.int8).view(np.uint8)
    return np.concatenate([low, high, scales, d.view(np.uint8)], axis=-1).reshape(values.shape[0], -1)


def _codes(scales: Array, most: int) -> tuple[Array, Array]:
    """The scale of a block's scales, as a column, and their codes."""
    d = (scales.max(axis=-1, keepdims=True) / most).astype(np.float16)
    return d, np.rint(scales / _nonzero(d.astype(np.float32))).clip(0, most)


def _nonzero(values: Array) -> Array:
    return np.where(values == 0, 1, values)


def write_q4_k_m(directory: Path, path: Path) -> None:
    """The llama model of an MLX directory, in fp32, as a GGUF file."""
    import mlx.core as mx

    config = json.loads((directory / "config.json").read_text())
    weights: Any = mx.load(str(directory / "model.safetensors"))
    writer = GGUFWriter(path, "llama")
    writer.add_file_type(LlamaFileType.MOSTLY_Q4_K_M)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    _add_tokenizer(writer, directory)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for name, weight in weights.items():
        theirs, values = _gguf_name(name), np.array(weight)
        if (count := heads.get(theirs.split(".")[-2])) is not None:
            values = values.reshape(count, 2, -1, values.shape[-1]).swapaxes(1, 2).reshape(values.shape)
        kind = _kind(theirs, values.shape, layers=config["num_hidden_layers"])
        writer.add_tensor(theirs, _quantized(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _gguf_name(name: str) -> str:
    stem = name.removeprefix("model.").removesuffix(".weight")
    if stem.startswith("layers."):
        _, number, part = stem.split(".", 2)
        return f"blk.{number}.{NAMES[part]}.weight"
    return {"embed_tokens": "token_embd.weight", "norm": "output_norm.weight"}[stem]


def _kind(name: str, shape: tuple[int, ...], *, layers: int) -> GGMLQuantizationType | None:
    if len(shape) == 1:
        return None
    _, *middle, part, _ = f".{name}".split(".")
    wide = part == "token_embd"
    if part in ("attn_v", "ffn_down"):
        layer = int(middle[-1])
        wide = layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2
    if shape[-1] % BLOCK:
        return Q8_0 if wide else Q5_0
    return Q6_K if wide else Q4_K


def _quantized(values: Array, kind: GGMLQuantizationType | None) -> Array:
    if kind is None:
        return values.astype(np.float32)
    writers = {Q4_K: quantize_q4_k, Q6_K: quantize_q6_k}
    return writers[kind](values) if kind in writers else quantize(values, kind)


def _add_tokenizer(writer: GGUFWriter, directory: Path) -> None:
    tokenizer = json.loads((directory / "tokenizer.json").read_text())
    config = json.loads((directory / "tokenizer_config.json").read_text())
    generation = json.loads((directory / "generation_config.json").read_text())
    special = {token["content"] for token in tokenizer["added_tokens"] if token["special"]}
    tokens = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([TokenType.CONTROL if token in special else TokenType.NORMAL for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_eos_token_id(generation["eos_token_id"][0])
    template = directory / "chat_template.jinja"
    writer.add_chat_template(template.read_text() if template.exists() else config["chat_template"])
