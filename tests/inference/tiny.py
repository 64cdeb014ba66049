"""Model files small enough to write by hand."""

import json
import struct
from pathlib import Path
from typing import Any

CONFIG: dict[str, Any] = {"model_type": "llama", "vocab_size": 300, "max_position_embeddings": 512, "eos_token_id": 2}


def write_model(directory: Path, **config: Any) -> Path:
    """A directory that passes every structural check; it holds no working weights."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(CONFIG | config))
    (directory / "tokenizer.json").write_text('{"model": {"vocab": {}}}')
    (directory / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    header = json.dumps({"w": {"dtype": "F16", "shape": [4], "data_offsets": [0, 8]}}).encode()
    (directory / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    return directory


def gguf_bytes(*, architecture: str = "llama", tensor_type: int = 0) -> bytes:
    """A GGUF file with one 32-element tensor of the type with this number."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    pair = text("general.architecture") + struct.pack("<I", 8) + text(architecture)
    tensor = text("token_embd.weight") + struct.pack("<IQIQ", 1, 32, tensor_type, 0)
    return b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + pair + tensor + bytes(256)
