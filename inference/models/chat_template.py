"""Renders conversations with the model's chat template. Needs transformers, not mlx.

Guarantees that nobody can forge a turn: the text of a special token ("<|im_end|>") inside a message, or inside an
argument that the template writes into the prompt, is encoded as plain text.
A prompt is a prefix of the next turn's prompt as far as the template and the tokenizer's merges allow.
"""

import json
import secrets
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inference.models.model_files import read_dialect, special_tokens
from inference.models.special_text import SpecialTexts
from inference.models.template_cuts import TemplateCuts
from inference.types import Message, ModelError

_RUNS_AT_ONCE = 256
"""How many runs of text between special tokens are encoded in one call, which doesn't hold the interpreter lock."""


class TemplateTokenizer:
    """A ChatTokenizer for an MLX directory. Loaded at first use (1 to 3 s); any thread may call it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._tokenizer: Any = None
        self._plain: dict[str, list[int]] = {}
        self._special = SpecialTexts(())
        self._longest_token = 0
        self._cuts: TemplateCuts | None = None
        self.dialect = read_dialect(directory)
        """How the model calls tools and thinks."""
        self.special_tokens = special_tokens(directory)
        """The ids of the tokens that are not text, by how they are written."""

    @property
    def longest_token(self) -> int:
        """A text of n bytes has at least n / `longest_token` tokens, unless bytes have no token; 0 if unknown."""
        if self._tokenizer is None:
            self.load()
        return self._longest_token

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        """The prompt's token ids, generation prompt included. Raises ModelError when the template refuses."""
        with self._lock:  # transformers' fast tokenizers keep state while they encode
            self._load()
            markers: dict[str, str] = {}
            safe = self._marked_inside(list(messages), markers)
            try:
                text = self._tokenizer.apply_chat_template(
                    safe,
                    tools=self._marked_inside(list(tools), markers) or None,
                    tokenize=False,
                    add_generation_prompt=True,
                    **self._marked_inside(dict(template_kwargs or {}), markers),
                )
            except Exception as error:  # a template may raise anything
                reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
                raise ModelError(f"The model's chat template refuses these messages: {reason}.") from error
            return tuple(self._encode(text, markers))

    def encode_markup(self, text: str) -> tuple[int, ...]:
        """The tokens of text as a template writes it: special tokens are encoded as such."""
        with self._lock:
            self._load()
            return tuple(self._ids(text))

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of a part of a prompt, with special tokens."""
        with self._lock:
            self._load()
            text: str = self._tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False)
            return text

    def cuts(self, prompt: Sequence[int]) -> tuple[int, ...]:
        """Positions in a prompt at which other prompts are likely to differ: the end of what the template puts before
        the first message of the user, and the beginning of the answer.
        """
        with self._lock:
            self._load()
            return self._known_cuts().find(prompt)

    def load(self) -> None:
        """Load now what the first prompt would load, and compile the template. Raises ModelError."""
        with self._lock:
            self._load()
            self._known_cuts()

    def _known_cuts(self) -> TemplateCuts:
        if self._cuts is None:
            self._cuts = self._learn_cuts()
        return self._cuts

    def _learn_cuts(self) -> TemplateCuts:
        def render(text: str, answers: bool) -> list[int]:
            return self._ids(
                self._tokenizer.apply_chat_template(
                    [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=answers
                )
            )

        try:
            return TemplateCuts.learn(render, frozenset(self.special_tokens.values()))
        except Exception:  # a template may raise anything
            return TemplateCuts()

    def _marked(self, content: str, markers: dict[str, str]) -> str:
        """The content with the text of each special token replaced by a marker that tokenizers don't treat specially.

        `markers` has the markers of this prompt by the text that they replace. They can't be guessed.
        """
        # UTF-8 can't carry lone surrogates, which JSON can.
        parts: list[str] = []
        for plain, special in self._special.split(content.encode("utf-8", errors="replace").decode("utf-8")):
            parts.append(plain)
            if special:
                parts.append(markers.setdefault(special, f"\ue000{secrets.token_hex(8)}\ue001"))
        return "".join(parts)

    def _marked_inside(self, value: Any, markers: dict[str, str]) -> Any:
        """A JSON value with `_marked` applied to all its strings."""
        if isinstance(value, str):
            return self._marked(value, markers)
        if isinstance(value, list):
            return [self._marked_inside(entry, markers) for entry in value]
        if isinstance(value, dict):
            return {self._marked(name, markers): self._marked_inside(entry, markers) for name, entry in value.items()}
        return value

    def _encode(self, text: str, markers: dict[str, str]) -> list[int]:
        if not markers:
            return self._ids(text)
        texts = {marker: special for special, marker in markers.items()}
        parts = list(SpecialTexts(texts).split(text))
        runs = list({plain for plain, _ in parts if plain})
        encoded: dict[str, list[int]] = {}
        for first in range(0, len(runs), _RUNS_AT_ONCE):
            batch = runs[first : first + _RUNS_AT_ONCE]
            encoded.update(zip(batch, self._tokenizer(batch, add_special_tokens=False)["input_ids"], strict=True))
        ids: list[int] = []
        for plain, marker in parts:
            ids += encoded.get(plain, ())
            ids += self._plain[texts[marker]] if marker else ()
        return ids

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def _load(self) -> None:
        if self._tokenizer is not None:
            return
        from transformers import AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(str(self._directory), local_files_only=True)
        except Exception as error:
            reason = str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
            raise ModelError(f"The tokenizer in {self._directory} can't be loaded ({reason}).") from error
        added = tokenizer.added_tokens_decoder.values()
        special = {str(token) for token in added if token.special} | set(tokenizer.all_special_tokens)
        # The text of each special token, encoded as plain text.
        self._plain = {
            text: tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"] for text in special
        }
        if special:
            self._special = SpecialTexts(special)
        self._longest_token = longest_token(tokenizer)
        self._tokenizer = tokenizer


def longest_token(tokenizer: Any) -> int:
    """The most bytes of a token of a transformers tokenizer; 0 for kinds of tokenizers without a limit.

    Those may encode text of any length as one token (an unknown word), or leave text out.
    """
    parts = json.loads(tokenizer.backend_tokenizer.to_str()) if tokenizer.is_fast else {"model": {}}
    if parts["model"].get("type") != "BPE" or parts.get("normalizer") is not None:
        return 0
    is_byte_level = '"ByteLevel"' in json.dumps(parts.get("pre_tokenizer"))
    if not is_byte_level and not parts["model"].get("byte_fallback"):
        return 0
    # A byte-level vocabulary has one character for each byte.
    return max(len(token) if is_byte_level else len(token.encode()) for token in tokenizer.get_vocab())
