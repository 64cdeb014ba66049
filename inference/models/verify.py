"""Checks, without loading it, whether a directory is a model that the engine can serve.

Every refusal is a ModelError with one sentence. Standard library only: no model library is imported, and mlx-lm's list
of architectures is read from its files.
"""

import ast
import importlib.util
import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference.types import ModelError

_DTYPES = {"F32": "fp32", "F16": "fp16", "BF16": "bf16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """The facts of a model that are in its files."""

    context_length: int
    vocab_size: int
    temperature: float
    top_p: float
    weights: str
    size_bytes: int


def verify_loadable(directory: Path) -> ModelFacts:
    """The facts of a model that can be loaded, as far as its files show. Raises ModelError."""
    if not directory.is_dir():
        raise ModelError(f"There is no directory {directory}.")
    config = _json(directory, "config.json", required=True)
    text = config["text_config"] if isinstance(config.get("text_config"), dict) else {}
    _check_architecture(config)
    dtypes = _check_weights(directory)
    _check_tokenizer(directory)
    generation = _json(directory, "generation_config.json")
    vocab_size = config.get("vocab_size", text.get("vocab_size"))
    if not isinstance(vocab_size, int):
        raise ModelError("The model's config.json doesn't say its vocab_size.")
    return ModelFacts(
        context_length=_context_length(directory, config | text),
        vocab_size=vocab_size,
        temperature=_fraction(generation.get("temperature"), upper=2.0),
        top_p=_fraction(generation.get("top_p"), upper=1.0),
        weights=_form(config, dtypes),
        size_bytes=sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()),
    )


def _check_architecture(config: dict[str, Any]) -> None:
    kind = config.get("model_type")
    if not isinstance(kind, str):
        raise ModelError("The model's config.json doesn't say its model_type.")
    if config.get("model_file"):
        raise ModelError("The model brings code of its own, which is not run here: take one that mlx-lm knows.")
    spec = importlib.util.find_spec("mlx_lm")
    if spec is None or spec.origin is None:
        return
    package = Path(spec.origin).parent
    module = _remapping(package).get(kind, kind)
    if "/" in module or not (package / "models" / f"{module}.py").is_file():
        raise ModelError(f"The installed mlx-lm doesn't know the model type {kind!r}.")


def _remapping(package: Path) -> dict[str, str]:
    """`mlx_lm.utils.MODEL_REMAPPING`, read without importing it."""
    for node in ast.parse((package / "utils.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and [getattr(t, "id", "") for t in node.targets] == ["MODEL_REMAPPING"]:
            mapping: dict[str, str] = ast.literal_eval(node.value)
            return mapping
    return {}


def _check_weights(directory: Path) -> set[str]:
    """The types of the weights, after checking that every file of weights is complete."""
    files = sorted(directory.glob("model*.safetensors"))
    index = _json(directory, "model.safetensors.index.json").get("weight_map", {})
    missing = sorted({name for name in index.values() if not (directory / name).is_file()})
    if missing:
        raise ModelError(f"The model's weights are incomplete: {missing[0]} is missing.")
    if not files:
        raise ModelError(f"There are no weights in {directory}: a file model.safetensors is needed.")
    return set().union(*(_safetensors_dtypes(path) for path in files))


def _safetensors_dtypes(path: Path) -> set[str]:
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length)) if length < 1 << 28 else {}
        tensors = [value for key, value in header.items() if key != "__metadata__"]
        whole = 8 + length + max(value["data_offsets"][1] for value in tensors)
        dtypes = {value["dtype"] for value in tensors}
    except (OSError, ValueError, struct.error, KeyError, TypeError):
        raise ModelError(f"The model's weights file {path.name} is damaged.") from None
    if path.stat().st_size < whole:
        raise ModelError(f"The model's weights file {path.name} is cut short.")
    return dtypes


def _check_tokenizer(directory: Path) -> None:
    if not any((directory / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "tiktoken.model")):
        raise ModelError(f"There is no tokenizer in {directory}: a file tokenizer.json is needed.")
    if (directory / "tokenizer.json").is_file():
        _json(directory, "tokenizer.json")
    files = ("chat_template.jinja", "chat_template.json")
    if not _json(directory, "tokenizer_config.json").get("chat_template") and not any(
        (directory / name).is_file() for name in files
    ):
        raise ModelError("The model has no chat template, so it can't hold a conversation: take an instruct model.")


def _context_length(directory: Path, config: dict[str, Any]) -> int:
    stated = [config.get(key) for key in ("max_position_embeddings", "n_positions", "seq_length", "max_seq_len")]
    stated.append(_json(directory, "tokenizer_config.json").get("model_max_length"))
    lengths = [value for value in stated if isinstance(value, int) and 0 < value < 1 << 30]
    if not lengths:
        raise ModelError("The model's config.json doesn't say its context length (max_position_embeddings).")
    return lengths[0]


def _form(config: dict[str, Any], dtypes: set[str]) -> str:
    quantization = config.get("quantization") or config.get("quantization_config")
    if isinstance(quantization, dict):
        bits = quantization.get("bits")
        return f"{bits}bit" if bits else str(quantization.get("quant_method", "quantized"))
    return "+".join(sorted(_DTYPES.get(dtype, dtype.lower()) for dtype in dtypes))


def _fraction(value: object, *, upper: float) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= upper
    return float(value) if usable else 1.0  # type: ignore[arg-type]


def _json(directory: Path, name: str, *, required: bool = False) -> dict[str, Any]:
    try:
        value = json.loads((directory / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        if required:
            raise ModelError(f"There is no {name} in {directory}, so it is not a model directory.") from None
        return {}
    except (OSError, ValueError):
        raise ModelError(f"The model's {name} is damaged.") from None
    if not isinstance(value, dict):
        raise ModelError(f"The model's {name} is damaged.")
    return value
