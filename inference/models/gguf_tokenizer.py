"""Writes the tokenizer of a GGUF file as the files that transformers reads.

Byte-level BPE only. The file has its vocabulary, merges and special tokens, but its pre-tokenizer only by name.
"""

import json
from pathlib import Path
from typing import Any

from inference.models.gguf_file import GgufFile
from inference.types import ModelError

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CONTROL, _USER_DEFINED = 3, 4


def write_tokenizer(file: GgufFile, directory: Path) -> None:
    """Write tokenizer.json, tokenizer_config.json and generation_config.json. Raises ModelError."""
    from tokenizers import AddedToken, Tokenizer, decoders, models

    tokens: list[str] = file.value("tokenizer.ggml.tokens")
    kinds: list[int] = file.value("tokenizer.ggml.token_type")
    merges = [tuple(merge.split(" ", 1)) for merge in file.value("tokenizer.ggml.merges")]
    template = file.value("tokenizer.chat_template")
    if not template:
        raise ModelError("The GGUF file has no chat template, so its model can't hold a conversation.")

    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = _pre_tokenizer(str(file.value("tokenizer.ggml.pre") or "gpt-2"))
    tokenizer.decoder = decoders.ByteLevel()
    pairs = list(zip(tokens, kinds, strict=True))
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token, kind in pairs if kind == _CONTROL]
    )
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token, kind in pairs if kind == _USER_DEFINED])
    tokenizer.save(str(directory / "tokenizer.json"))

    special = {name: _special(file, name, tokens) for name in ("bos", "eos", "unknown", "padding")}
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": template,
        "clean_up_tokenization_spaces": False,
        "add_prefix_space": False,
        "bos_token": special["bos"],
        "eos_token": special["eos"],
        "unk_token": special["unknown"],
        "pad_token": special["padding"],
    }
    _write(directory / "tokenizer_config.json", {key: value for key, value in config.items() if value is not None})
    ids: dict[str, Any] = {f"{name}_token_id": _special_id(file, name) for name in ("bos", "eos")}
    ids["eos_token_id"] = _end_ids(file, tokens) or ids["eos_token_id"]
    _write(directory / "generation_config.json", {key: value for key, value in ids.items() if value is not None})


def check_tokenizer(file: GgufFile) -> None:
    """Raise ModelError for a tokenizer that `write_tokenizer` can't write."""
    kind = file.value("tokenizer.ggml.model")
    if kind != "gpt2":
        raise ModelError(
            f"The GGUF file's tokenizer is of kind {kind!r}; only byte-level BPE ('gpt2') can be converted: "
            "take the model in MLX or safetensors form."
        )
    _pre_tokenizer(str(file.value("tokenizer.ggml.pre") or "gpt-2"))


def _pre_tokenizer(name: str) -> Any:
    from tokenizers import Regex, pre_tokenizers

    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    match name:
        case "smollm":
            return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])
        case "gpt-2":
            return byte_level
        case "llama-bpe" | "llama3" | "llama-v3":
            split = pre_tokenizers.Split(Regex(_LLAMA3), behavior="isolated")
            return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    raise ModelError(
        f"The GGUF file's pre-tokenizer {name!r} is unknown; smollm, gpt-2 and llama-bpe can be converted: "
        "take the model in MLX or safetensors form."
    )


def _special_id(file: GgufFile, name: str) -> int | None:
    value: int | None = file.value(f"tokenizer.ggml.{name}_token_id")
    return value


def _special(file: GgufFile, name: str, tokens: list[str]) -> str | None:
    number = _special_id(file, name)
    return None if number is None else tokens[number]


def _end_ids(file: GgufFile, tokens: list[str]) -> list[int]:
    """The tokens that end a turn: those that the file names, and the usual end markers."""
    numbers = {_special_id(file, "eos"), _special_id(file, "eot")} - {None}
    markers = ("<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "<|endoftext|>")
    numbers |= {tokens.index(marker) for marker in markers if marker in tokens}
    return sorted(number for number in numbers if number is not None)


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
