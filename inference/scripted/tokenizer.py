"""A reversible tokenizer without a model: what the scripted engine reads and writes. Standard library only.

A token is, in this order of preference: one of the two ChatML markers; up to eight printable ASCII letters, digits or
signs with at most one space before them (so "Hello world" is two tokens, and a word of more than eight letters is
split after each eighth); a single byte of anything else, so an emoji is four tokens and a Japanese character three.
Ids are a pure function of the text: the same in every process, within 63 bits, and decoding gives back every byte.
A marker that a user writes is text: only `render` makes markers.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from inference.calls import Thinking
from inference.dialects import OWN_TEMPLATE
from inference.types import Message, ModelError

IM_START, IM_END = 256, 257
_FIRST_PIECE = 258
_MARKERS = {IM_START: b"<|im_start|>", IM_END: b"<|im_end|>"}
_PIECE = re.compile(rb" ?[!-~]{1,8}|.", re.DOTALL)
VOCAB_SIZE = 2**60


def encode(text: str) -> tuple[int, ...]:
    """The ids of plain text; never a marker. Lone surrogates, which UTF-8 can't carry, become "?"."""
    # Not findall: that would hold the interpreter until it has found everything.
    return tuple(_piece_id(match[0]) for match in _PIECE.finditer(text.encode("utf-8", errors="replace")))


def token_bytes(token: int) -> bytes:
    """The bytes of a token."""
    if token < IM_START:
        return bytes((token,))
    if token < _FIRST_PIECE:
        return _MARKERS[token]
    rest, characters = token - _FIRST_PIECE, bytearray()
    while rest:
        rest, digit = divmod(rest - 1, 95)
        characters.append(32 + digit)
    return bytes(characters)


def decode(tokens: Iterable[int]) -> str:
    """The text of ids; bytes that are not UTF-8 become U+FFFD."""
    return b"".join(map(token_bytes, tokens)).decode("utf-8", errors="replace")


def _piece_id(piece: bytes) -> int:
    if len(piece) == 1 and not 33 <= piece[0] <= 126:
        return piece[0]
    number = 0  # bijective base 95, first character least significant: every piece has its own number, at least 1
    for byte in reversed(piece):
        number = number * 95 + byte - 31
    return _FIRST_PIECE + number


class ScriptedTokenizer:
    """A ChatTokenizer that renders plain ChatML; it adds no system prompt of its own.

    Its template writes its arguments as JSON into a message at the start. It takes no tools: they are shown, and
    called, in Hermes' form. It thinks between `<think>` and `</think>`.
    """

    longest_token = 9
    dialect = replace(OWN_TEMPLATE, thinking=Thinking())
    special_tokens: Mapping[str, int] = {}

    def load(self) -> None:
        """There is nothing to load."""

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        if tools:
            raise ModelError("The scripted template takes no tools.")
        tokens: list[int] = []
        if template_kwargs:
            text = json.dumps(template_kwargs, sort_keys=True, ensure_ascii=False)
            tokens += (IM_START, *encode(f"template\n{text}"), IM_END, *encode("\n"))
        for message in messages:
            tokens += (IM_START, *encode(f"{message['role']}\n{message['content']}"), IM_END, *encode("\n"))
        return (*tokens, IM_START, *encode("assistant\n"))

    def encode_markup(self, text: str) -> tuple[int, ...]:
        return encode(text)

    def cuts(self, prompt: Sequence[int]) -> tuple[int, ...]:
        return ()

    def decode(self, tokens: Sequence[int]) -> str:
        return decode(tokens)


def last_user_text(prompt: tuple[int, ...]) -> str:
    """The last user message of a rendered prompt; "" if there is none."""
    starts = [i for i, token in enumerate(prompt) if token == IM_START]
    for start in reversed(starts):
        stop = next((i for i in range(start, len(prompt)) if prompt[i] == IM_END), len(prompt))
        role, _, content = decode(prompt[start + 1 : stop]).partition("\n")
        if role == "user":
            return content
    return ""
