"""GGUF files become models that compute the same; other files are refused in one sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
from gguf import GGUFReader

from inference import MlxOptions, ModelEntry, Registry, add_gguf, open_model, verify_loadable
from inference.models.gguf_conversion import convert_gguf
from inference.types import ModelError
from tests.inference.models.k_quants import write_q4_k_m
from tests.inference.recorder import Client, Recorder
from tests.inference.tiny import gguf_bytes

HIDDEN, HEADS, KEY_HEADS, LETTERS = 32, 4, 2, 300


def silent(stage: str, done: float) -> None:
    pass


def permuted(array: Any, heads: int) -> Any:
    """The row order that llama.cpp gives q and k."""
    return array.reshape(heads, 2, array.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(array.shape)


@pytest.fixture(scope="module")
def original() -> dict[str, Any]:
    """A one-layer llama with random weights, by mlx-lm's names."""
    import mlx.core as mx

    keys = HIDDEN // HEADS * KEY_HEADS
    shapes = {
        "model.embed_tokens": (LETTERS, HIDDEN), "model.norm": (HIDDEN,),
        "model.layers.0.self_attn.q_proj": (HIDDEN, HIDDEN), "model.layers.0.self_attn.k_proj": (keys, HIDDEN),
        "model.layers.0.self_attn.v_proj": (keys, HIDDEN), "model.layers.0.self_attn.o_proj": (HIDDEN, HIDDEN),
        "model.layers.0.input_layernorm": (HIDDEN,), "model.layers.0.post_attention_layernorm": (HIDDEN,),
        "model.layers.0.mlp.gate_proj": (64, HIDDEN), "model.layers.0.mlp.up_proj": (64, HIDDEN),
        "model.layers.0.mlp.down_proj": (HIDDEN, 64),
    }  # fmt: skip
    return {f"{name}.weight": mx.random.normal(shape, key=mx.random.key(1)) for name, shape in shapes.items()}


@pytest.fixture(scope="module")
def gguf_file(original: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    import mlx.core as mx

    names = {
        "embed_tokens": "token_embd", "model.norm": "output_norm", "q_proj": "attn_q", "k_proj": "attn_k",
        "v_proj": "attn_v", "o_proj": "attn_output", "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
        "gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down",
    }  # fmt: skip
    arrays = {}
    for name, array in original.items():
        theirs = next(to for of, to in names.items() if of in name)
        heads = {"attn_q": HEADS, "attn_k": KEY_HEADS}.get(theirs)
        arrays[f"blk.0.{theirs}.weight" if "layers" in name else f"{theirs}.weight"] = (
            permuted(array, heads) if heads else array
        )
    byte_letters = [chr(byte) for byte in range(ord("!"), ord("~") + 1)]
    tokens = [*byte_letters, "ab", "<|im_end|>", *(f"x{i}" for i in range(LETTERS - len(byte_letters) - 2))]
    kinds = [3 if token == "<|im_end|>" else 1 for token in tokens]
    numbers = {
        "attention.head_count": HEADS, "attention.head_count_kv": KEY_HEADS, "embedding_length": HIDDEN,
        "block_count": 1, "feed_forward_length": 64, "context_length": 128,
    }  # fmt: skip
    metadata: dict[str, Any] = {f"llama.{key}": mx.array(value, dtype=mx.uint32) for key, value in numbers.items()}
    metadata |= {
        "general.architecture": "llama", "llama.attention.layer_norm_rms_epsilon": mx.array(1e-5),
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm", "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": ["a b"], "tokenizer.ggml.token_type": mx.array(kinds, dtype=mx.int32),
        "tokenizer.ggml.eos_token_id": mx.array(tokens.index("<|im_end|>"), dtype=mx.uint32),
        "tokenizer.chat_template": "{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}",
    }  # fmt: skip
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    mx.save_gguf(str(path), arrays, metadata)
    return path


def test_the_weights_come_back_as_they_were(original: dict[str, Any], gguf_file: Path, tmp_path: Path) -> None:
    import mlx.core as mx

    convert_gguf(gguf_file, tmp_path, form="fp32", progress=silent)
    weights: Any = mx.load(str(tmp_path / "model.safetensors"))
    assert set(weights) == set(original)
    assert all(mx.array_equal(weights[name], array).item() for name, array in original.items())


def test_the_tokenizer_and_the_end_of_a_turn_are_carried_over(gguf_file: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    convert_gguf(gguf_file, tmp_path, form="quantised", progress=silent)
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert tokenizer.encode("ab12<|im_end|>").tokens == ["ab", "1", "2", "<|im_end|>"]
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["max_position_embeddings"], config["vocab_size"], config["tie_word_embeddings"]) == (
        128,
        LETTERS,
        True,
    )
    generation = json.loads((tmp_path / "generation_config.json").read_text())
    assert generation["eos_token_id"] == [tokenizer.token_to_id("<|im_end|>")]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "file.gguf is not a GGUF file that can be read: it is damaged, cut short, or of a newer version."),
        (b"GGUF\x03\x00\x00\x00" + b"\xff" * 100, "file.gguf is not a GGUF file that can be read"),
        (gguf_bytes(tensor_type=99), "file.gguf is not a GGUF file that can be read"),
        (gguf_bytes()[:-200], "file.gguf is not a GGUF file that can be read"),
        (gguf_bytes(architecture="falcon"), "has the architecture 'falcon'; only 'llama' can be converted"),
    ],
)
def test_refusals(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "file.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelError) as refused:
        convert_gguf(path, tmp_path, form="fp32", progress=silent)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"There is no file .*file\.gguf\."):
        convert_gguf(tmp_path / "file.gguf", tmp_path, form="fp32", progress=silent)


def test_a_large_model_is_written_in_several_files(
    gguf_file: Path, original: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlx.core as mx

    monkeypatch.setattr("inference.models.gguf_conversion._FILE_BYTES", 10_000)
    convert_gguf(gguf_file, tmp_path, form="fp32", progress=silent)
    files: list[Any] = [mx.load(str(file)) for file in sorted(tmp_path.glob("model*.safetensors"))]
    assert len(files) > 2
    assert sorted(name for weights in files for name in weights) == sorted(original)
    assert verify_loadable(tmp_path).weights == "fp32"


@pytest.mark.real_model
@pytest.mark.timeout(600)
def test_a_q4_k_m_file_answers(default_model: ModelEntry, blas_cache: Path, tmp_path: Path) -> None:
    """The usual kind of file: Q4_K with some Q6_K, and norms in F32."""
    path, recorder = tmp_path / "smollm2-q4_k_m.gguf", Recorder()
    write_q4_k_m(default_model.path, path)
    kinds = {tensor.tensor_type.name for tensor in GGUFReader(path).tensors}
    assert {"Q4_K", "Q6_K", "F32"} <= kinds
    entry = add_gguf(Registry(tmp_path / "data"), path)
    assert (entry.name, entry.context_length) == ("smollm2-q4_k_m", default_model.context_length)
    engine, tokenizer = open_model(entry, sink=recorder, options=MlxOptions(blas_cache=blas_cache))
    engine.start()
    try:
        client = Client(engine, tokenizer, recorder)
        asked = client.submit("Name three colors.", max_tokens=6)
        recorder.wait(asked)
    finally:
        engine.close()
    assert "Red" in recorder.text(asked)
