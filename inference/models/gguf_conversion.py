"""Converts a GGUF file into a directory that mlx-lm loads: weights, config, tokenizer, chat template.

Guarantees that the converted model computes with the file's tensors, as `gguf_weights` describes, and that GGUF's row
order of q and k for the llama architecture is undone. One file of weights is in memory at a time.
"""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference.models.gguf_file import GgufFile
from inference.models.gguf_tokenizer import check_tokenizer, write_tokenizer
from inference.models.gguf_weights import GROUP, WeightForm, convert_tensor
from inference.types import ModelError, Progress

if TYPE_CHECKING:
    from gguf import ReaderTensor

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
_FILE_BYTES = 2 << 30
"""Size at which a file of weights is written and the next one begun."""


def convert_gguf(source: Path, directory: Path, *, form: WeightForm, progress: Progress) -> None:
    """Write the model of `source` into the existing, empty `directory`. Raises ModelError.

    `form` is "fp32" (fastest on a CPU) or "quantised" (quantised tensors stay quantised, for Metal and CUDA).
    """
    progress("Reading the GGUF file", 0.0)
    file = GgufFile(source)
    _check(file)
    check_tokenizer(file)
    progress("Reading the GGUF file", 1.0)
    heads = {"attn_q": _number(file, "attention.head_count"), "attn_k": _key_heads(file)}
    weights = _WeightFiles(directory)
    quantised: dict[str, int] = {}
    for done, (name, tensor) in enumerate(file.tensors.items(), start=1):
        target = _target(name)
        rows = _original_rows(tensor, heads.get(name.removesuffix(".weight").rpartition(".")[2]))
        parts, bits = convert_tensor(tensor, rows, form=form)
        if bits is not None:
            quantised[str(target)] = bits
        weights.add({f"{target}.{part}": array for part, array in parts.items()})
        progress("Converting the weights", done / len(file.tensors))
    progress("Writing the model", 0.0)
    weights.write()
    config = _config(file, form=form, quantised=quantised)
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    write_tokenizer(file, directory)
    progress("Writing the model", 1.0)


class _WeightFiles:
    """Writes arrays to model.safetensors, and large models' to model-2.safetensors and so on."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._arrays: dict[str, Any] = {}
        self._number = 1

    def add(self, arrays: dict[str, Any]) -> None:
        """Take a tensor's arrays, and write a file if it is full."""
        import mlx.core as mx

        mx.eval(list(arrays.values()))
        self._arrays |= arrays
        if sum(array.nbytes for array in self._arrays.values()) >= _FILE_BYTES:
            self.write()

    def write(self) -> None:
        """Write the arrays that are not written yet."""
        import mlx.core as mx

        if self._arrays:
            name = "model.safetensors" if self._number == 1 else f"model-{self._number}.safetensors"
            mx.save_safetensors(str(self._directory / name), self._arrays, metadata={"format": "mlx"})
            self._arrays = {}
            self._number += 1


def _check(file: GgufFile) -> None:
    architecture = file.value("general.architecture")
    if architecture != "llama":
        raise ModelError(
            f"{file.name} has the architecture {architecture!r}; only 'llama' can be converted from GGUF: "
            "take the model in MLX or safetensors form."
        )
    if "rope_freqs.weight" in file.tensors:
        raise ModelError(
            f"{file.name} scales its rotary frequencies, which can't be converted from GGUF: "
            "take the model in MLX or safetensors form."
        )
    unknown = [name for name in file.tensors if _target(name) is None]
    if unknown:
        raise ModelError(f"{file.name} contains a tensor {unknown[0]!r} that a llama model doesn't have.")
    if "token_embd.weight" not in file.tensors:
        raise ModelError(f"{file.name} contains no embeddings, so it is not a complete model.")


def _target(name: str) -> str | None:
    """mlx-lm's name for a GGUF tensor, without the last part; None for an unknown one."""
    if match := re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", name):
        part = _BLOCK.get(match[2])
        return part and f"model.layers.{match[1]}.{part}"
    return _TOP.get(name.removesuffix(".weight"))


def _original_rows(tensor: "ReaderTensor", heads: int | None) -> Any:
    """The order of rows that the original checkpoint has: each head's in the two halves of its rotary embedding."""
    if heads is None:
        return None
    import numpy as np

    return np.arange(int(tensor.shape[1])).reshape(heads, -1, 2).swapaxes(1, 2).reshape(-1)


def _config(file: GgufFile, *, form: WeightForm, quantised: dict[str, int]) -> dict[str, Any]:
    heads, width = _number(file, "attention.head_count"), _number(file, "embedding_length")
    config: dict[str, Any] = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": width,
        "num_hidden_layers": _number(file, "block_count"),
        "intermediate_size": _number(file, "feed_forward_length"),
        "num_attention_heads": heads,
        "num_key_value_heads": _key_heads(file),
        "head_dim": file.value("llama.attention.key_length") or width // heads,
        "rms_norm_eps": file.value("llama.attention.layer_norm_rms_epsilon") or 1e-5,
        "rope_theta": file.value("llama.rope.freq_base") or 10000.0,
        "max_position_embeddings": _number(file, "context_length"),
        "vocab_size": int(file.tensors["token_embd.weight"].shape[1]),
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "torch_dtype": "float32" if form == "fp32" else "float16",
    }
    if quantised:
        usual = max(set(quantised.values()), key=list(quantised.values()).count)
        other = {name: {"group_size": GROUP, "bits": bits} for name, bits in quantised.items() if bits != usual}
        config["quantization"] = {"group_size": GROUP, "bits": usual, **other}
    return config


def _number(file: GgufFile, key: str) -> int:
    value = file.value(f"llama.{key}")
    if not isinstance(value, int):
        raise ModelError(f"The GGUF file doesn't say its {key.replace('_', ' ').replace('.', ' ')}.")
    return value


def _key_heads(file: GgufFile) -> int:
    value = file.value("llama.attention.head_count_kv")
    return value if isinstance(value, int) else _number(file, "attention.head_count")
