"""Detokenizers never split a character, and lose nothing but an incomplete end."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from inference.engine.detokenizer import BytesDetokenizer, Detokenizer, WindowDetokenizer, byte_level_tokens

ONE_BYTE_EACH = [bytes((byte,)) for byte in range(256)]
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffd"))


def bytes_detokenizer() -> Detokenizer:
    return BytesDetokenizer(ONE_BYTE_EACH)


def window_detokenizer() -> Detokenizer:
    return WindowDetokenizer(lambda tokens: bytes(tokens).decode("utf-8", errors="replace"))


both = st.sampled_from([bytes_detokenizer, window_detokenizer])


def pieces(detokenizer: Detokenizer, tokens: bytes) -> list[str]:
    return [*(detokenizer.add(token) for token in tokens), detokenizer.flush()]


@given(both, texts)
def test_the_pieces_join_to_the_text(make, text: str) -> None:
    assert "".join(pieces(make(), text.encode())) == text


@given(both, texts, st.integers(min_value=0))
def test_cut_anywhere_no_half_character_shows(make, text: str, cut: int) -> None:
    whole = text.encode()
    tokens = whole[: cut % (len(whole) + 1)]
    assert "".join(pieces(make(), tokens)) == tokens.decode(errors="ignore")


@given(st.binary())
def test_bytes_that_are_no_text_become_replacements_and_nothing_raises(noise: bytes) -> None:
    got = "".join(pieces(bytes_detokenizer(), noise))
    assert noise.decode("utf-8", errors="replace").startswith(got)


@given(st.lists(st.binary(min_size=1, max_size=5), max_size=8), texts)
def test_any_split_into_tokens_gives_the_same_text(splits: list[bytes], text: str) -> None:
    whole = text.encode()
    cuts = sorted({min(len(whole), sum(map(len, splits[:i]))) for i in range(len(splits) + 1)} | {len(whole)})
    table = [whole[a:b] for a, b in zip([0, *cuts], cuts, strict=False)]
    detokenizer = BytesDetokenizer(table)
    assert "".join(detokenizer.add(token) for token in range(len(table))) + detokenizer.flush() == text


def test_the_table_of_a_byte_level_tokenizer(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer = {
        "model": {"vocab": {"Ġa": 0, "č": 1, "Ċ": 2, "ðŁĺĢ": 3, "<|end|>": 4}},
        "decoder": {"type": "ByteLevel"},
        "added_tokens": [
            {"id": 4, "content": "<|end|>", "special": True},
            {"id": 6, "content": "<think>", "special": False},
        ],
    }
    path.write_text(json.dumps(tokenizer))
    assert byte_level_tokens(path) == [b" a", b"\r", b"\n", "😀".encode(), b"", b"", b"<think>"]
    path.write_text(json.dumps(tokenizer | {"decoder": {"type": "Metaspace"}}))
    assert byte_level_tokens(path) is None
