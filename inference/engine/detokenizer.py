"""Turns a stream of token ids into text, piece by piece, never splitting a character. Standard library only.

Guarantees, for every detokenizer here: the pieces joined are the text of all tokens; no piece ends inside a character;
what `flush` finds incomplete at the end is dropped, since half a character is not text. Bytes that can never become a
character (a model may emit them) become U+FFFD.
"""

import codecs
import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Protocol

_REPLACEMENT = "\ufffd"
_LONGEST_WAIT = 8  # tokens; the longest character takes four, so bytes that wait longer are not part of one


class Detokenizer(Protocol):
    """Decodes one sequence; each sequence has its own."""

    def add(self, token: int) -> str:
        """The text that this token completes, often none."""

    def flush(self) -> str:
        """The text that was held back."""


class BytesDetokenizer:
    """For tokenizers whose every token is a fixed string of bytes (byte-level BPE)."""

    def __init__(self, token_bytes: Sequence[bytes]) -> None:
        self.token_bytes = token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def add(self, token: int) -> str:
        return self._decoder.decode(self.token_bytes[token]) if token < len(self.token_bytes) else ""

    def flush(self) -> str:
        self._decoder.reset()
        return ""


class WindowDetokenizer:
    """For any other tokenizer: decodes a short window of tokens and emits what its text has gained."""

    def __init__(self, decode: Callable[[list[int]], str]) -> None:
        self._decode = decode
        self._window: list[int] = []
        self._emitted = 0  # tokens at the window's head whose text was emitted; they stay as context for spaces

    def add(self, token: int) -> str:
        self._window.append(token)
        text, waiting = self._text(), len(self._window) - self._emitted
        if not text or (text.endswith(_REPLACEMENT) and waiting <= _LONGEST_WAIT):
            return ""
        return self._emit(text)

    def flush(self) -> str:
        return self._emit(self._text().rstrip(_REPLACEMENT))

    def _text(self) -> str:
        before = self._decode(self._window[: self._emitted])
        return self._decode(self._window)[len(before) :]

    def _emit(self, text: str) -> str:
        self._window = self._window[self._emitted :]
        self._emitted = len(self._window)
        return text


def byte_level_tokens(tokenizer_json: Path, *, shown: Collection[str] = ()) -> list[bytes] | None:
    """Every token's bytes by its id, if the tokenizer is byte-level BPE; None otherwise.

    Special tokens are not text: their bytes are empty, except for those in `shown`.
    """
    try:
        tokenizer: dict[str, Any] = json.loads(tokenizer_json.read_text(encoding="utf-8"))
        vocabulary: dict[str, int] = tokenizer["model"]["vocab"]
        if not _is_byte_level(tokenizer.get("decoder")):
            return None
        bytes_by_character = _byte_of_character()
        table = [b""] * (max(vocabulary.values(), default=-1) + 1)
        for text, number in vocabulary.items():
            table[number] = bytes(bytes_by_character[c] for c in text if c in bytes_by_character)
        for added in tokenizer.get("added_tokens", []):
            table += [b""] * (added["id"] + 1 - len(table))
            is_text = not added.get("special") or added["content"] in shown
            table[added["id"]] = added["content"].encode() if is_text else b""
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return table


def _is_byte_level(decoder: Any) -> bool:
    if not isinstance(decoder, dict):
        return False
    if decoder.get("type") == "Sequence":
        parts = decoder.get("decoders", [])
        return len(parts) == 1 and _is_byte_level(parts[0])
    return decoder.get("type") == "ByteLevel"


def _byte_of_character() -> dict[str, int]:
    """The inverse of GPT-2's mapping from bytes to visible characters."""
    visible = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {chr(256 + i): byte for i, byte in enumerate(hidden)}
